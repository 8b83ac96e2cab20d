// Penstock works on rule files: it checks, converts, compares and formats them, and shows what
// their rules would do, without a program that uses them.
//
//	penstock new                                    # a rule file to begin with
//	penstock check rules/                           # every mistake, with its line and column
//	penstock convert --from sentinel-java flow.json # a native file of one of Sentinel's
//	penstock diff old.yaml new.yaml                 # which rules differ, and in which fields
//	penstock fmt -w rules.yaml                      # keys in order, comments kept
//	penstock explain rules.yaml "GET /orders"       # which rules a call would meet, and why
//	penstock try rules.yaml "GET /orders" --rate 150/s --for 10s
//
// Nothing here opens a connection, and only fmt -w, new, man and try --svg write files.
// docs/command.md has a page of examples.
package main

import (
	"os"
)

func main() { os.Exit(run(os.Args[1:], system())) }
