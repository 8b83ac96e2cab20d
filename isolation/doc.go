// Package isolation limits how many calls of a resource are in flight at the same time, so that one
// slow dependency can't use up everything.
//
// A call over the limit is refused. With MaxQueue it may wait in a queue instead, for MaxWait: when
// a call ends, its permits go to the first in the queue. A flow rule with the metric concurrency
// refuses too, but counts a call that waits for any rule as in flight; here a queued call holds no
// permit.
//
// The page docs/rules/isolation.md has every field and examples.
package isolation
