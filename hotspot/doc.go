// Package hotspot limits how much traffic each value of an argument gets: each user,
// each product, each tenant on its own. The value is an argument's, by its position (api.Args,
// [At]), or an attachment's, by its name (api.Param).
//
// A call over the limit of its value is treated as the rule's metric and behavior say:
//
//   - metric [QPS], behavior [Reject]: it is refused. Each value has a bucket of Threshold units
//     plus Burst, which is refilled at the first call that arrives more than an Interval after it
//     was last filled.
//   - metric [QPS], behavior [TokenBucket]: it is refused. Each value has a token bucket:
//     Threshold units come back per Interval, one by one at an even rate, and Burst + 1 may pass in
//     one go after a pause.
//   - metric [QPS], behavior [Throttle]: it queues, so that the calls of a value leave
//     at even distances.
//   - metric [Concurrency]: it is refused while Threshold units of its value are in flight.
//
// The limits are exact for each value whatever the concurrency. A rule keeps track of a bounded
// number of values; see values.go for why forgetting one never resets its limit.
package hotspot
