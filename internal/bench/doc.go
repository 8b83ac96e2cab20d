// Command bench measures what a guarded call costs, beside the libraries that
// people choose instead, and prints one table.
//
//	go run .               measure and print, about four minutes
//	go run . -short        are all rows alive? in seconds, the figures say little
//	go run . -write        keep the table in docs/benchmarks.md: make bench
//	go test -bench . .     the same calls as Go benchmarks, for benchstat
//
// These are given in this folder with GOWORK=off: go.work leaves the module out, since every
// other package would be compiled with the libraries that it measures.
//
// The unit is two readings of the clock, taken beside every batch: what a call can't
// do without that has a response time. See package measure.
//
// A new row is a line in ours.go (what Penstock does), in targets.go (what it may
// cost), or in the file of a job (what a library does).
package main
