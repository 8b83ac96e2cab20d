// Command figures runs the checks that report their result as a number, at larger sizes than an
// ordinary test run, and prints one table.
//
//	go run ./internal/proof/figures              all of them: make figures
//	go run ./internal/proof/figures ./stat       the checks of one package
//	go run ./internal/proof/figures -write       keep the table in figures.md, its summary in docs/reliability.md
//	FIGURES=long go run ./internal/proof/figures the sizes for a night
//
// A check is any test that calls figure.Report; see package internal/proof/figure. They are found
// by reading the test files, so none is forgotten. The exit status is 1 if a figure misses its
// target, a check fails, or a package that should report figures reports none.
package main
