// Package linear checks that a window and a semaphore are linearizable: for any concurrent
// operations on them there is a serial order in which each would have returned the same result.
// It is a separate module because of the checker that it requires.
package linear
