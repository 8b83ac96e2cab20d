// Package adaptive limits how many calls of a resource are in flight at the same time,
// in units, by a limit that need not be known: it is learned from how long calls take.
//
// With few calls in flight, each is served immediately. Beyond some number, the knee, more calls in
// flight get no more done: they only wait for each other somewhere behind the resource, in a
// connection pool, a run queue, a database. That is where the limit should be, and it moves:
// machines come and go, and so does other load on them. The rule keeps probing a little above its
// limit and a little below, and moves to where the calls above begin to take longer than those
// below.
//
// The tree shows what it has learned (see [LimitStats]), even for a rule in shadow mode, which
// limits no call. A limit that is known is better declared: as an isolation rule, which can also
// have a queue.
package adaptive
