// Package isolation limits how many calls of a resource are in flight at the same
// time, so that one slow dependency can't use up everything.
//
// A call over the limit is refused. With MaxQueue it may wait in a queue instead, for
// MaxWait: the permits of a call that ends go to the first in the queue. A flow rule with the
// metric concurrency refuses too, but counts a call that waits, for whatever rule, as in flight;
// here a call that waits in the queue holds no permit.
package isolation
