// Package replay plays traffic through rules on a simulated clock: a recorded day takes moments. A
// test can show that rules never refuse the traffic of a program.
//
//	report, err := replay.Play(set, calls)
//
// The same rules and calls always give the same Report. The command penstock replay plays access
// logs; see the page docs/replay.md.
package replay
