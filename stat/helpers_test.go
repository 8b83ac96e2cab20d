package stat

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

var random = chance.Source

// rounds returns the number of repetitions of a test: n for a full run, half of that in an ordinary
// run, and fewer under the race detector and with -short.
func rounds(n int) int {
	n = figure.Size(n/4, n/2, n, 10*n)
	if race.Enabled {
		n /= 4
	}
	return max(n, 1)
}

// ms converts milliseconds to nanoseconds, the unit of time in stat.
func ms(n int64) int64 { return n * int64(time.Millisecond) }

// epoch is a time of this century, a multiple of every bucket width in these tests.
var epoch = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano()

// crowd runs f on the given number of goroutines and waits for all of them.
func crowd(goroutines int, f func(g int)) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

// inStep runs f on several goroutines, round after round. They begin each round as simultaneously
// as possible. Between rounds, while no f runs, it calls check.
func inStep(goroutines, rounds int, f func(g, round int), check func(round int)) {
	var arrived, left, checked atomic.Int64
	await := func(n *atomic.Int64, total int) {
		for n.Load() < int64(total) {
			runtime.Gosched()
		}
	}
	crowd(goroutines, func(g int) {
		for round := range rounds {
			arrived.Add(1)
			await(&arrived, goroutines*(round+1))
			f(g, round)
			if left.Add(1) == int64(goroutines*(round+1)) { // the last to finish the round
				check(round)
				checked.Add(1)
			}
			await(&checked, round+1)
		}
	})
}

// Minute returns the counts of the last 60 seconds, including the current one.
func (c *Counters) Minute(now int64) Counts {
	var sum Counts
	for _, second := range c.History(now) {
		sum.Add(&second.Value)
	}
	return sum
}
