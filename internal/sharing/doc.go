// Package sharing is a member's side of the limits that the processes of a cluster share: its leases, and what it
// sends to the store.
//
// Package cluster has the words for it, package cluster/store what a store must do. Each engine is a [Member]. A
// member doesn't ask the store call by call. It takes a lease of units from the store and spends it locally:
//
//	call ──> Window.TryAdd ──> lease (one compare-and-swap)         most calls end here
//	             │ none
//	             └─> Member.Fetch ──> one batch for a shard ──> Store.Do     waits, at most Timeout
//
// For a rule in shadow mode no call waits: a [Late] stands in its place.
//
// # The parts of a limit
//
// A [Window] composes four parts, each a type that begins with its invariant, and knows neither the member nor the store:
//
//	leases    the units that calls spend, now and in the next bucket       testdata/leases.txt
//	demand    how much to ask the store for, and when                      testdata/demand.txt
//	round     what a command carries, and what a reply means               testdata/round.txt
//	fallback  what calls may do while the store is unreachable             testdata/fallback.txt
//
// The files are transcripts that a test plays: read them first. A [Semaphore] has permits, a permitDemand and a
// permitRound (testdata/permits.txt), a [Throttle] turns, a turnDemand, a turnRound and a turnFallback
// (testdata/turns.txt). The methods of the limits themselves hold the mutex, and hand on what the parts return.
//
// # Why no window is over its limit
//
// A lease belongs to the bucket that it was charged in, and is spent in that bucket or not
// at all. The store counts a unit when it leases it, so what members spend is never more
// than what the store has counted, and every unit is admitted while its bucket is current
// in the store's time. For that, clocks need not agree; only their rates must, to one part in a
// thousand: the end of a lease is counted from the moment at which its request was sent, which is
// before the store read its clock, and the start of a coming bucket from the moment at which the
// reply was received, which is after it.
//
// # Grants may be lost or doubled, hand-backs only lost
//
// A grant whose reply is lost lets in too few calls for one interval, then heals by itself. A
// hand-back that is counted twice lets in too many. So a member sends a hand-back at most
// once, unless the store has certainly not executed it, and forgets it on sending, and the store refuses
// any hand-back whose number it has seen.
//
// What is promised, what is not, and by how much: docs/cluster.md.
package sharing
