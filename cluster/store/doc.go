// Package store defines the protocol between the members of a cluster and their [Store]. Most
// programs don't import it: only authors of stores do. Programs that use a store need package
// cluster.
//
// A store executes five kinds of [Command], each on one key and atomically:
//
//	Take      leases units of a window, and takes back unspent units
//	Turn      leases turns of a throttle
//	Tokens    leases units of a token bucket
//	Permits   sets how many permits of a semaphore a member holds
//	Presence  announces a member, and counts the members
//
// The comment on each type defines the store's steps and their order. Package cluster/storetest
// checks a store against it. The Memory in package cluster is the shortest store; cluster/redis has
// the one for servers.
//
// More kinds of command may be added: the error for a command that a store doesn't know must wrap
// [ErrNotExecuted].
package store
