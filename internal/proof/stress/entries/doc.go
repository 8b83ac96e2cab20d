// Package entries proves, by its tests, that a call takes with it when it ends
// exactly what it brought, however it ends.
//
//   - Something breaks off at every point of a call: before, in and after each role of
//     each slot, in the clock, the context, the logger and whoever takes a reservation
//     back; with a panic, a fault, or the end of the goroutine; for every way in which
//     a call fares (points_test.go lists the points, fares_test.go the ways). After
//     that the counters balance, the windows hold what was admitted and nothing else,
//     and the whole limit is there for the next calls.
//   - Handles that are over are used in every way there is while the state behind them
//     serves other calls, which never notice.
//   - Contexts end at the very instant at which a wait does: a call runs or is refused,
//     never both, and what it held is where it belongs.
//   - Guarded code panics, ends its goroutine, or is not there at all.
package entries
