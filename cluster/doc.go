// Package cluster lets several processes share one limit: a [Config] makes an engine a member of a cluster, and the
// [Rule] within a rule of a family says how its limit is shared.
//
// The shared state is in a [store.Store] that you probably run already: a Redis or a Valkey (package
// cluster/redis), or, for one process, tests and simulations, a [Memory]. A member doesn't ask the store call by
// call. It takes a lease of units from the store and spends it locally: most calls cost one compare-and-swap, and
// one that finds too few units waits for the store, at most Rule.Timeout.
//
// No window is over its limit: the store counts a unit when it leases it, and a unit is spent in the bucket in
// which it was counted, or not at all.
//
// What is promised, what is not, and by how much: docs/cluster.md. Authors of stores need package cluster/store.
package cluster
