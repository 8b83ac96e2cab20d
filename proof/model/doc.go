// Package model holds the engine against models too simple to be wrong: a naive
// twin that keeps every event in a list and decides by looking over the list, with queues
// in which calls overtake and buckets into which tokens drip; the sequential meaning of one
// window and one semaphore; and an exact count over every real interval. It shares no code
// with what it checks.
//
// The random tests are those of pgregory.net/rapid: a failure names its seed, and
//
//	go test -run TestTwin -rapid.seed=N
//
// makes the same again; -rapid.checks=N makes more of them.
package model
