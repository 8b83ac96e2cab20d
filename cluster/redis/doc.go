// Package penstockredis keeps the limits that a cluster of processes shares in Redis or Valkey,
// version 5 or later: a single server, one behind Sentinels, or a Redis Cluster.
//
//	guard, err := api.New(api.Config{Stores: penstockredis.Stores()})
//
// lets rule files name a store by its URL; see [Open]. Importing the package has no other effect.
//
// Each command of package cluster/store is one script, executed atomically by the server's clock.
// docs/cluster.md says what the server must provide, and how to set it up.
package penstockredis
