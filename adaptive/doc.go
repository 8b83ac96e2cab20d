// Package adaptive limits the calls of a resource that are in flight at the same time, in units.
// The limit need not be known: it is learned from response times.
//
// With few calls in flight, each is served immediately. Above some number, the knee, more calls in
// flight get no more done: they only wait for each other somewhere behind the resource, in a
// connection pool, a run queue, a database. That is the right limit, and it changes: machines are
// added and removed, and other load on them varies. The rule keeps probing a little above its limit
// and a little below, and moves to the point above which calls begin to take longer.
//
// The tree shows the learned limit (see [LimitStats]), even for a rule in shadow mode, which refuses
// no call. If you know the limit, declare it instead: as an isolation rule, which can also have a
// queue.
//
// The page docs/rules/adaptive.md has every field and examples.
package adaptive
