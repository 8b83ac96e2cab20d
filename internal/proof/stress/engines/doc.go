// Package engines runs whole calls through an engine under package internal/proof/schedules: entry
// handles, rule sets, semaphores and nodes while others use, replace or evict them. Windows,
// counters, semaphores, throttles and registries by themselves have such tests beside their code.
//
// The tests have the build tag sim; package internal/proof/schedules runs them.
package engines
