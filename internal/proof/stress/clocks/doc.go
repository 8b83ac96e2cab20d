// Package clocks proves, by its tests, what a stepped clock can't do to an engine.
//
// The matrix sets a clock forward or back, by a millisecond to a year, at every phase
// of a call and around it (while rules are reloaded, nodes evicted, the tree read),
// under every kind of flow and system rule. In every cell, callers who want more than the limit
// come all the time. What they get is held against the documented limits, in the
// engine's time over every interval, and in real time over every interval in which
// the clock was not set forward; and nobody who keeps asking is refused for longer
// than an interval. Set back by more than callers ever pause, a clock must change no
// verdict and no wait at all.
//
// At the ends of what clocks show, and before 1970, the same calls are told the same as
// anywhere else, however far a clock leaps.
//
// Real time is what a test says has passed: no test here waits.
package clocks
