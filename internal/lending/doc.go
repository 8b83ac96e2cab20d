// Package lending decides when counters that many processors share lend to the lanes of their
// callers, and how much (see stat.Window, meter.Semaphore and hotspot/lend.go). They lend under
// contention; built with the tag lend, they always lend the maximum, so that tests on one goroutine
// cover that path; and in schedules (tag sim) each schedule decides.
package lending
