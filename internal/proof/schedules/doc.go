// Package schedules runs whole calls through an engine under package internal/sim:
// entry handles, rule sets, gauges and nodes while others use, replace or evict them.
// Windows, counters, gauges, throttles and registries by themselves have such tests
// beside their code.
//
// The tests have the build tag sim; package internal/sim runs them.
package schedules
