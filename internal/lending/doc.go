// Package lending says when counters that many processors share lend to the lanes of their
// callers, and how much (see stat.Window, meter.Semaphore and hotspot/lend.go). They lend where they
// are contended; built with the tag lend they lend always and as much as they may, so that tests on
// one goroutine go that way as well; and in schedules (tag sim) each schedule says.
package lending
