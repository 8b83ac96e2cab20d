// Package outlier stops calling endpoints that do not work, while others that serve the same
// resource do. The code names the endpoint of a call (api.Endpoint). Each endpoint has a breaker, as
// described in package breaker. One whose breaker trips is ejected: calls to it are refused, so that
// a load balancer picks another. When its recovery time has elapsed it gets probes, and their
// outcome decides whether it returns to service or stays out. A call without an endpoint is ignored.
//
//	              trips, and the share allows it
//	in service ------------------------------------> ejected: open, half-open
//	  ^  ^                                            |    |
//	  |  +----------- its probes are good ------------+    |
//	  +-------- the share no longer allows it -------------+
//
// # The share
//
// At most a share of the endpoints that were chosen lately is ejected, and never all: if everything
// fails, choosing another endpoint would not help. An endpoint that fails while the share is used
// up stays in service until there is room. Its calls are still counted meanwhile.
//
// The page docs/rules/outlier.md has every field and examples.
package outlier
