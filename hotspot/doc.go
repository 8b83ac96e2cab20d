// Package hotspot limits how much traffic each value of an argument gets: each user,
// each product, each tenant on its own. The value is that of an argument by its place
// (api.Args, [At]) or of an attachment by its name (api.Param).
//
// What happens to a call over the limit of its value:
//
//   - metric [QPS], behavior [Reject]: it is refused. Each value has a bucket of
//     Threshold units and Burst on top, which is filled up at the first call that comes
//     more than an Interval after it was filled last.
//   - metric [QPS], behavior [TokenBucket]: it is refused. Each value has a token bucket:
//     Threshold units come back per Interval, one by one at an even rate, and Burst + 1
//     may come at once after a pause.
//   - metric [QPS], behavior [Throttle]: it queues, so that the calls of a value leave
//     at even distances.
//   - metric [Concurrency]: it is refused while so many units of its value are in
//     flight.
//
// The limits are exact for each value whatever the concurrency. A rule knows a bounded
// number of values; see values.go for why forgetting one never resets its limit.
package hotspot
