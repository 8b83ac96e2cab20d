// Package lending decides when a counter that many processors share lends units to the lanes of its
// callers, and how many (see stat.Window, meter.Semaphore and hotspot/lend.go). Counters lend under
// contention. With the build tag lend they always lend the maximum, so that tests on one goroutine
// cover that path. With the tag sim each schedule decides.
package lending
