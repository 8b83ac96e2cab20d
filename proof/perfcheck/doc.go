// Command perfcheck guards against a slower hot path, so that noise can't trip it:
//
//	go run ./proof/perfcheck
//
// It runs each scenario in thousands of batches of a few microseconds, all scenarios in
// turn, and takes the quickest batch of each: whatever else the machine does only adds
// to the others. What it judges are ratios of such minima within one run, mostly to two
// readings of the clock, which is what a call can't do without. The bounds are far from
// what is usual; docs/benchmarks.md has the figures.
//
// On amd64, where valgrind is installed, it also counts the instructions of a call
// (callgrind). They are the same in every run, on a busy machine too, so a call may take
// no more than 3 % over its figure in scenario.go. A change that costs more either saves
// it elsewhere or raises the figure, and says why. valgrind shows the program no vDSO:
// what the clock itself takes is in the ratios only. Where instructions can't be counted,
// the last line says so, and the ratios alone decide.
//
// What fails is measured again, three times in all.
package main
