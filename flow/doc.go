// Package flow limits how much traffic a resource gets: how many calls per interval ([QPS]) or
// how many at the same time ([Concurrency]), counted over all callers, one caller, one path of
// calls, or another resource.
//
// The rule's behavior says what happens to a call over the limit:
//
//   - [Reject] refuses it. The limit is exact, whatever the concurrency. Most
//     rules want this.
//   - [Throttle] queues it, so that calls leave at even distances, and refuses
//     it if the queue is longer than MaxWait. For work that must not arrive in bursts.
//   - [TokenBucket] refuses it as well, from a limit that holds in every real interval: Threshold
//     units come back in each, and Burst more may come in one go.
//   - [WarmUp] rejects too, but from a limit that starts at Threshold /
//     ColdFactor and rises to Threshold as the resource is used. For resources
//     that are slow when cold.
//   - [WarmUpThrottle] queues, at the spacing of the warm-up limit.
//
// A threshold can fall as memory is used, see Rule.MemoryThreshold.
//
// A prioritized call that a plain [Reject] rule would refuse may wait for a
// coming bucket instead (see [stat.Window.TryBorrow]). In the queue of a throttle it goes ahead of
// those that are not prioritized, as far as [meter.Pacer] lets it.
package flow
