// Package linear checks that one window and one semaphore are linearizable: whatever goroutines do
// to them at once, there is an order of one after the other in which each would have got the same
// answer. It is a module of its own, for the sake of the checker that it needs.
package linear
