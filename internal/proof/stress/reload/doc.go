// Package reload proves that loading rules, at any moment and from any file, admits nothing extra,
// forgets nothing and is never visible half-way.
//
//   - a thousand loads in one instant of a clock that stands still, of rules that
//     change in every way a rule can;
//   - thousands of rewrites of watched files, in every way in which a file is
//     rewritten, under callers that look for a decision under parts of two sets;
//   - bad files of every kind over a good one;
//   - calls in flight while the rules shrink, loads from
//     within the listener, everything that inspect serves before, during and after.
//
// If a bound depends on time, the clock is the test's own. The one exception is the time from a
// file to a decision, which is a figure.
package reload
