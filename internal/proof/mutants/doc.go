// Command mutants breaks invariants of the code, one at a time, and reports whether the tests
// notice.
//
//	go run ./internal/proof/mutants                  all rows, two at a time
//	go run ./internal/proof/mutants -run 'stat\.'    rows whose declaration or invariant matches
//	go run ./internal/proof/mutants -j 8             eight at a time
//
// Each row names an invariant, a declaration, the code to replace in it, its replacement, and one
// test that must then fail. The command passes the changed file to go test -overlay, so the source
// tree stays unchanged. It exits with status 1 unless every mutant is killed.
//
// The code to replace is found by its tokens: comments and layout don't matter, and the declaration
// may move to another file of its package. An ordinary test looks up all rows, so a refactoring
// that a row doesn't fit fails at once.
//
// A new invariant gets a row. A fixed bug gets a test, named in known-bugs.md, and a row only if no
// row breaks the same invariant.
package main
