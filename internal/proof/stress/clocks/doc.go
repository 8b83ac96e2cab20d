// Package clocks proves, by its tests, that a stepped clock does no harm to an engine.
//
// The matrix sets a clock forward or back, by a millisecond to a year, at every phase of a call and
// around it (while rules are reloaded, nodes evicted, the tree read), under every kind of flow and
// system rule. In every cell, calls exceed the limit all the time. The admitted calls are compared
// with the documented limits, in the engine's time over every interval, and in real time over every
// interval in which the clock was not set forward; and a caller that keeps asking is refused for at
// most an interval. A clock set back by more than callers ever pause must change no verdict and no
// wait at all.
//
// At the ends of clocks' ranges, and before 1970, calls get the same verdicts as at any other time,
// no matter how far a clock leaps.
//
// Real time is the time that a test lets pass: no test here waits.
package clocks
