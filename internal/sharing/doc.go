// Package sharing implements a member's side of the limits that a cluster's processes share:
// leases, and the commands that go to the store.
//
// Package cluster defines the configuration, package cluster/store the contract of a store. Each
// engine is a [Member]. A member doesn't ask the store for each call. It leases units and spends
// them locally:
//
//	call ──> Window.TryAdd ──> lease (one compare-and-swap)         most calls end here
//	             │ none
//	             └─> Member.Fetch ──> one batch for a shard ──> Store.Do     waits, at most Timeout
//
// No call waits for a rule in shadow mode: a [Late] waits in its place.
//
// # The parts of a limit
//
// A [Window] composes four parts. Each type states its invariant first; no part knows the member or
// the store:
//
//	leases    the units that calls spend, now and in the next bucket       testdata/leases.txt
//	demand    how much to ask the store for, and when                      testdata/demand.txt
//	round     what a command carries, and what a reply means               testdata/round.txt
//	fallback  what calls may do while the store is unreachable             testdata/fallback.txt
//
// The files are transcripts that tests replay; read them first. A [Semaphore] has permits, a
// permitDemand and a permitRound (testdata/permits.txt); a [Throttle] has turns, a turnDemand, a
// turnRound and a turnFallback (testdata/turns.txt). A [Bucket] has tokens, a turnDemand, a
// bucketRound and a bucketFallback (testdata/tokens.txt). The methods of the limits hold the mutex and
// connect the parts.
//
// # Why no window is over its limit
//
// A lease belongs to the bucket it was charged in, and is spent in that bucket or not at all. The
// store counts a unit when it leases it, so members never spend more than the store has counted,
// and every unit is admitted while its bucket is current in the store's time. Clocks need not agree
// for that; only their rates must, to one part in a thousand: a lease ends counted from the moment
// its request was sent, before the store read its clock, and a coming bucket begins counted from
// the moment the reply arrived, after it.
//
// # Grants may be lost or doubled, hand-backs only lost
//
// A grant whose reply is lost admits too few calls for one interval, then heals by itself. A
// hand-back that is counted twice admits too many. So a member sends each hand-back at most once,
// unless the store has certainly not executed it, and forgets it on sending; and the store ignores
// a hand-back whose number it has seen.
//
// docs/cluster.md lists the guarantees and their limits.
package sharing
