// Command perfcheck guards against a slower hot path, so that noise can't trip it:
//
//	go run ./internal/perfcheck
//
// It runs each scenario in thousands of batches of a few microseconds, all scenarios in
// turn, and takes the quickest batch of each: whatever else the machine does only adds
// to the others. What it judges are ratios of such minima within one run, mostly to two
// readings of the clock, which is what a call can't do without. The bounds are far from
// what is usual; docs/benchmarks.md has the figures. What fails is measured again, three
// times in all.
//
// Where valgrind is installed, it also counts instructions (callgrind), which are nearly
// the same in every run. Their bounds are for amd64 and closer.
package main
