// Package shared provides the types of sync and sync/atomic that the engine uses.
//
// Ordinarily they are aliases and cost nothing. With the build tag sim, a scheduler decides before
// every access which goroutine continues (see package internal/proof/schedules). So a test can run
// any possible interleaving, and repeat it.
package shared
