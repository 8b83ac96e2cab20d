// Package flow limits how much traffic a resource gets: how many calls per interval ([QPS]) or how
// many at the same time ([Concurrency]), counted over all callers, one caller, one path of calls,
// or another resource.
//
// The rule's behavior decides what happens to a call over the limit:
//
//   - [Reject] refuses it. The limit is exact under any concurrency. Most rules want this.
//   - [Throttle] queues it, so that calls leave at even intervals, and refuses it if the queue is
//     longer than MaxWait. For work that must not arrive in bursts.
//   - [TokenBucket] refuses it too, by a limit that holds in every real interval: Threshold units
//     are refilled in each, and Burst more may pass at once.
//   - [WarmUp] refuses it too, by a limit that starts at Threshold / ColdFactor and rises to
//     Threshold as the resource is used. For resources that are slow when cold.
//   - [WarmUpThrottle] queues it, at the spacing of the warm-up limit.
//
// A threshold can fall as memory fills up; see Rule.MemoryThreshold.
//
// A prioritized call that a plain [Reject] rule would refuse may wait for an upcoming bucket instead
// (see [stat.Window.TryBorrow]). In the queue of a throttle it jumps ahead of calls that are not
// prioritized, within the bounds that [meter.Pacer] sets.
//
// The page docs/rules/flow.md has every field and examples.
package flow
