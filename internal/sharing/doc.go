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
