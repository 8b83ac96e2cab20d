// Package store is the protocol between a member of a cluster and the [Store] that its members share. It is for
// authors of stores: a program that only uses one needs package cluster.
//
// A store executes four kinds of [Command], each on one key and atomically:
//
//	Take      leases units of a window, and hands units back
//	Turn      leases turns of a throttle
//	Permits   sets how many permits of a semaphore a member holds
//	Presence  announces a member, and counts the members
//
// The comment on each type says what the store does, and in which order. Package cluster/storetest checks a store
// against that; package cluster has a Memory, which is the shortest store, and cluster/redis has one for servers.
//
// Further kinds of command may come: a store gives one that it doesn't know an error that wraps [ErrNotExecuted].
package store
