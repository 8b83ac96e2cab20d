// Command bench measures what a guarded call costs, beside the libraries that
// people choose instead, and prints one table.
//
//	go run ./bench                 measure and print, about four minutes
//	go run ./bench -short          are all rows alive? in seconds, the figures say little
//	go run ./bench -write          keep the table in docs/benchmarks.md: make bench
//	go test -bench . ./bench       the same calls as Go benchmarks, for benchstat
//
// The unit is two readings of the clock, taken beside every batch: what a call can't
// do without that has a response time. See package measure.
//
// A new row is a line in ours.go (what Penstock does), in targets.go (what it may
// cost), or in the file of a job (what a library does).
package main
