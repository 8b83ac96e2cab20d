// Command knownbugs holds the tests against the mistakes that others have made.
//
// Rate limiters, breakers and servers of the same kind as Penstock have had bugs
// that were found, told and mostly mended in public. rows.go lists them. Each must
// be impossible here, and a test that shows it names the row in a comment:
//
//	// known bug 23
//	// never above the limit, whatever the step. known bug 3, 4-7
//
// The comment stands right above the test or inside it.
//
//	go run ./proof/knownbugs            the rows without a test, and those that wait
//	go run ./proof/knownbugs -all       every row with its tests
//	go run ./proof/knownbugs -write     docs/known-bugs.md
//	go run ./proof/knownbugs -mutants   see below; -share 20 tries one in twenty
//	go run ./proof/knownbugs -attack    the same, with attacks in place of tests
//
// A row may wait for a part that is not built yet. A row that could have a test
// and has none makes the exit status 1.
//
// # Do the tests notice?
//
// mutants/ holds patches. Each puts one of these mistakes into Penstock's own code
// and says which tests must fail then. -mutants tries them all in a copy of the
// tree and tells how many were noticed; less than all is exit status 1.
//
// Some of them an attack finds too (package proof/attack), and say which. -attack tries
// these, and tells after how many rounds they were found.
package main
