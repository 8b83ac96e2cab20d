// Package stat counts and meters events over time. It knows no resource and no
// rule.
//
// Counting is for people and metering is for rules, and no structure is good at
// both:
//
//   - [Counters] count what happened on a node: a second window striped over
//     lanes, the last minute second by second, and running totals. A call never
//     blocks on them and no count is lost, but a reader may see one a little late.
//   - [Window] meters admissions over an interval: check and count are one
//     atomic step, so a limit holds under any concurrency.
//
// [LeapArray] is the ring of buckets that both ideas come from, for owners that
// hold a lock of their own.
//
// Time is an argument everywhere: nanoseconds of a clock that never goes back.
// A caller may be held up between reading the clock and using it; it then joins
// the newest bucket. State only moves forward.
package stat
