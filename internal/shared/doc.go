// Package shared has the types of sync and sync/atomic on which the engine is built, under one
// name.
//
// Ordinarily they are aliases and cost nothing. Built with the tag sim, each of them lets a
// scheduler decide, before every access, which goroutine continues (see package
// internal/proof/schedules). So a test can run any possible interleaving, and run it again.
package shared
