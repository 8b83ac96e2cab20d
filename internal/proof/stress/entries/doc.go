// Package entries proves, by its tests, that a call releases exactly what it acquired, however it
// ends.
//
//   - Something breaks off at every point of a call: before, in and after each role of
//     each slot, in the clock, the context, the logger and the code that takes a
//     reservation back; with a panic, a fault, or the end of the goroutine; for every
//     course of a call (points_test.go lists the points, fares_test.go the courses).
//     After that the counters balance, the windows hold the admitted units and nothing
//     else, and the whole limit is available to the next calls.
//   - Ended handles are used in every way while the state behind them serves other
//     calls, which never notice.
//   - Contexts end at the very instant at which a wait does: a call runs or is refused,
//     never both, and its units are counted in the right place.
//   - Guarded code panics, ends its goroutine, or is not there at all.
package entries
