// Penstock works on rule files: it checks, converts, compares and formats them, and simulates their
// effect without a program that uses them. It also shows the state of running programs that serve a
// console.
//
//	penstock new                                    # a starter rule file
//	penstock check rules/                           # every mistake, with its line and column
//	penstock convert --from sentinel-java flow.json # a native file from Sentinel's
//	penstock diff old.yaml new.yaml                 # which rules differ, and in which fields
//	penstock fmt -w rules.yaml                      # keys in order, comments kept
//	penstock explain rules.yaml "GET /orders"       # which rules apply to a call, and why
//	penstock try rules.yaml "GET /orders" --rate 150/s --for 10s
//	penstock replay --rules rules.yaml access.log   # what rules would have done to a log
//
// Only the commands that show running programs open connections, and only fmt -w, new, man and try
// --svg write files. docs/command.md has examples.
package main

import (
	"os"
	_ "time/tzdata" // so that timezones are checked alike on every machine
)

func main() { os.Exit(run(os.Args[1:], system())) }
