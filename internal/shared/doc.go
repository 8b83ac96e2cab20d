// Package shared is the memory that goroutines share: the types of sync and
// sync/atomic that the engine is built on, under one name.
//
// Ordinarily they are aliases and cost nothing. Built with the tag sim, each of them lets a
// scheduler decide, before every access, which goroutine continues (see package internal/proof/schedules).
// So a test can run any interleaving there is, and run it again.
package shared
