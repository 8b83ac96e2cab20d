// Package breaker stops calling what does not work. A breaker watches how the calls of a resource
// end. If too many fail or are slow it opens: calls are refused immediately, which spares the
// callers the wait and the resource the load. After a while it lets a few probes through, and
// closes again or stays open, depending on how they end.
//
// What trips a breaker is the rule's strategy:
//
//   - [ErrorRatio]: a share of the calls fails. Most rules want this.
//   - [ErrorCount]: a number of calls fails.
//   - [SlowRatio]: a share of the calls takes longer than SlowRT, without what they waited for rules.
//   - [ConsecutiveErrors]: a number of calls in a row fail, however far apart.
//
// Only calls that have completed count, each as one, whatever its units. A breaker bounds what
// fails after it has tripped, not what is already under way: for that, add a concurrency limit.
//
// # States
//
//	          trips                  Recovery is over
//	closed ----------> open ---------------------------> half-open
//	  ^                 ^  ^                               |    |
//	  |                 |  +------------- a probe is bad --+    | all probes are good
//	  |           trips |                                       |
//	  +----------- recovering <---------------------------------+
//	    three ramps are over        (closed at once without Ramp)
//
// In addition, it can be forced open or closed by hand, see table.Force.
//
// Every state has a number, and calls carry the number of the state in which they were let in. So a
// call that completes in a different state changes nothing: only probes decide a half-open breaker,
// and what failed before it closed doesn't open it again.
package breaker
