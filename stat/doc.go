// Package stat counts and meters events over time. It knows neither resources nor rules. Most
// programs don't import it.
//
// Counts are for people and meters are for rules, so there are two structures:
//
//   - [Counters] record the traffic of a node: a second window striped over lanes, the last minute
//     by the second, and running totals. A call almost never blocks on them and no count is lost,
//     but a reader may see a count slightly late.
//   - [Window] meters admissions over an interval: the check and the count are one atomic step, so a
//     limit holds under any concurrency.
//
// [LeapArray] is the ring of buckets behind both, for owners that hold a lock of their own.
//
// Time is an argument everywhere: nanoseconds of a clock that never goes back. A caller may be
// delayed between reading the clock and using the time; it then joins the newest bucket. State only
// moves forward.
package stat
