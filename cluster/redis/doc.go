// Package penstockredis keeps the limits that a cluster of processes shares in a Redis or a
// Valkey, from version 5 on: a single server, one behind Sentinels, or a Redis Cluster.
//
//	guard, err := api.New(api.Config{Stores: penstockredis.Stores()})
//
// lets rule files name one by its URL, see [Open]. Importing the package does nothing else.
//
// Each command of package cluster/store is one script, executed as a whole by the clock of the server.
// What the server must provide, and how to set it up: docs/cluster.md.
package penstockredis
