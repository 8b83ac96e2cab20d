// Package meter limits what calls hold and when they run, exactly: checking and taking are one
// step, so a limit holds under any concurrency. [stat.Window] does the same for calls in an
// interval.
//
//   - [Semaphore] counts units in flight. Calls that find none may wait in its queue ([Claim],
//     [Waiter]).
//   - [Pacer] space calls in time: each waits for its [Turn].
//   - [TokenBucket] lets units pass at a rate, with bursts, and makes no call wait.
//
// [Set] is the windows and semaphores of a node, by the names that rules have for them: a [Meter],
// or its owner.
//
// [Moment] is time finer than a nanosecond, for turns and tokens.
package meter
