// Command perfcheck guards against a slower hot path, so that noise can't trip it:
//
//	go run ./internal/proof/perfcheck           counts instructions
//	go run ./internal/proof/perfcheck -ratios   compares times, too
//
// On amd64, where valgrind is installed, it counts the instructions of a call (callgrind). They
// are the same in every run, on a busy machine too, so a call may take no more than 3 % over its
// figure in scenario.go. A change that costs more either saves it elsewhere or raises the
// figure, and says why. Where instructions can't be counted, the last line says so, and the
// exit status is 0.
//
// valgrind shows the program no vDSO: the cost of the clock itself is in the ratios only. With
// -ratios each scenario runs in thousands of batches of a few microseconds, all scenarios in
// turn, and the quickest batch of each counts. The bounds are on ratios of such minima within
// one run, mostly to two readings of the clock, since a call can't do without those; they are
// far from what is usual. docs/benchmarks.md has the figures.
//
// A measurement that fails is repeated, three times in all.
package main
