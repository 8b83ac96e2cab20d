// Package meter limits the units that calls hold and the times at which they run, exactly: the
// check and the acquisition are one step, so a limit holds under any concurrency. [stat.Window]
// does the same for calls in an interval.
//
//   - [Semaphore] counts units in flight. Calls that find no free units may wait in its queue
//     ([Claim], [Waiter]).
//   - [Pacer] spaces calls in time: each waits for its [Turn].
//   - [TokenBucket] admits units at a rate, with bursts, and makes no call wait.
//
// [Set] holds a node's windows and semaphores under the names that rules use: a [Meter], or the
// owner.
//
// [Moment] is a time with a resolution below a nanosecond, for turns and tokens.
package meter
