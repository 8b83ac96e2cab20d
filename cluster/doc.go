// Package cluster lets several processes share one limit: a [Config] makes an engine a member of a
// cluster, and the [Rule] within a family's rule says how the limit is shared. docs/cluster.md
// lists the guarantees and their limits.
//
// The shared state is in a [store.Store] that you probably run already: Redis or Valkey (package
// cluster/redis), or, for one process, tests and simulations, a [Memory]. A member doesn't ask the
// store for each call. It leases units and spends them locally: most calls cost one
// compare-and-swap, and a call that finds too few units waits for the store, at most Rule.Timeout.
//
// No window exceeds its limit: the store counts a unit when it leases it, and the unit is spent in
// the bucket it was counted in, or not at all.
//
// Authors of stores need package cluster/store.
package cluster
