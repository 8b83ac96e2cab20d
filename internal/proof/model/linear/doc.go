// Package linear checks that a window and a semaphore are linearizable: whatever goroutines do to
// them at once, there is a serial order in which each operation would have returned the same
// answer. It is a separate module because of the checker that it requires.
package linear
