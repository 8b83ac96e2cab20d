// Package breaker stops calling what does not work. A breaker watches how the calls of a resource
// end. If too many fail or are slow it opens: calls are refused immediately, which spares the
// callers the wait and the resource the load. After a while it admits a few probes, and closes or
// stays open, depending on how they end.
//
// The rule's strategy decides what trips a breaker:
//
//   - [ErrorRatio]: a share of the calls fails. Most rules want this.
//   - [ErrorCount]: a number of calls fails.
//   - [SlowRatio]: a share of the calls takes longer than SlowRT, not counting waits for rules.
//   - [ConsecutiveErrors]: a number of calls in a row fail, even if they are far apart.
//
// Only completed calls count, each as one, regardless of its units. A breaker stops calls after it
// has tripped, not calls already under way: for those, add a concurrency limit.
//
// # States
//
//	          trips                  Recovery elapsed
//	closed ----------> open ---------------------------> half-open
//	  ^                 ^  ^                               |    |
//	  |                 |  +------------- a probe is bad --+    | all probes are good
//	  |           trips |                                       |
//	  +----------- recovering <---------------------------------+
//	    three ramps have ended      (closed at once without Ramp)
//
// In addition, it can be forced open or closed by hand; see table.Force.
//
// Every state has a number, and a call carries the number of the state that admitted it. So a call
// that completes in a different state changes nothing: only probes decide a half-open breaker, and
// calls from before it closed can't open it again.
//
// The page docs/rules/breaker.md has every field and examples.
package breaker
