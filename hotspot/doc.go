// Package hotspot limits how much traffic each value of an argument gets: each user, each product,
// each tenant separately. The value is an argument, by its position (api.Args, [At]), an
// attachment, by its name (api.Param), or a combination of several, the caller and the resource.
//
// The rule's metric and behavior decide what happens to a call over the limit of its value:
//
//   - metric [QPS], behavior [Reject]: refuse it. Each value has a window or, with [Refill], a bucket
//     of Threshold units plus Burst, which is refilled at the first call that arrives more than an
//     Interval after the last filling.
//   - metric [QPS], behavior [TokenBucket]: refuse it. Each value has a token bucket: Threshold
//     units are refilled per Interval, one by one at an even rate, and Burst + 1 may pass at once
//     after a pause.
//   - metric [QPS], behavior [Throttle]: queue it, so that the calls of a value leave at even
//     intervals.
//   - metric [Concurrency]: refuse it while Threshold units of its value are in flight.
//
// The limits are exact for each value under any concurrency. A rule tracks a bounded number of
// values; see values.go for why evicting one never resets its limit.
//
// The page docs/rules/hotspot.md has every field and examples.
package hotspot
