// Command bench measures the cost of a guarded call next to the libraries that people choose
// instead, and prints one table.
//
//	go run .               measure and print, about four minutes
//	go run . -short        check that all rows work, in seconds; the figures mean little
//	go run . -write        keep the table in docs/benchmarks.md: make bench
//	go test -bench . .     the same calls as Go benchmarks, for benchstat
//
// Run these in this folder with GOWORK=off: go.work leaves the module out, since every other
// package would be compiled with the libraries that it measures.
//
// The unit is two readings of the clock, taken next to every batch: the minimum for a call with a
// response time. See package measure.
//
// To add a row, add a line in ours.go (a Penstock call), in targets.go (a limit on its cost), or in
// the file of a job (a library).
package main
