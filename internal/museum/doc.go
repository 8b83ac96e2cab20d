// Command museum holds the tests against the mistakes that others have made.
//
// Rate limiters, breakers and servers of the same kind as Penstock have had bugs
// that were found, told and mostly mended in public. rows.go lists them. Each must
// be impossible here, and a test that shows it names the row in a comment:
//
//	// museum 23
//	// never above the limit, whatever the step. museum 3, 4-7
//
// The comment stands right above the test or inside it.
//
//	go run ./internal/museum            the rows without a test, and those that wait
//	go run ./internal/museum -all       every row with its tests
//	go run ./internal/museum -write     docs/museum.md
//	go run ./internal/museum -mutants   see below
//
// A row may wait for a part that is not built yet. A row that could have a test
// and has none makes the exit status 1.
//
// # Do the tests notice?
//
// mutants/ holds patches. Each puts one of these mistakes into Penstock's own code
// and says which tests must fail then. -mutants tries them all in a copy of the
// tree and tells how many were noticed; less than all is exit status 1.
package main
