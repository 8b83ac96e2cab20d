// Command perfcheck guards against a slower hot path, without being fooled by noise:
//
//	go run ./internal/proof/perfcheck           counts instructions
//	go run ./internal/proof/perfcheck -ratios   compares times, too
//
// On amd64, if valgrind is installed, it counts the instructions of a call (callgrind). They are
// the same in every run, on a busy machine too, so a call may take at most 3 % more than its figure
// in scenario.go. A change that costs more either saves it elsewhere or raises the figure and gives
// the reason. If instructions can't be counted, the last line says so, and the exit status is 0.
//
// valgrind hides the vDSO from the program, so only the ratios include the cost of the clock
// itself. With -ratios each scenario runs in thousands of batches of a few microseconds, all
// scenarios in turn, and the quickest batch of each counts. The bounds apply to ratios of such
// minima within one run, mostly to two readings of the clock, since a call can't do without those;
// they are far from the usual ratios. docs/benchmarks.md lists the measured ratios.
//
// A measurement that fails is repeated, three times in all.
package main
