// Package engines runs whole calls through an engine under package internal/proof/schedules: entry
// handles, rule sets, semaphores and nodes while others use, replace or evict them. The packages
// with windows, counters, semaphores, throttles and registries test these alone in the same way.
//
// The tests have the build tag sim; package internal/proof/schedules runs them.
package engines
