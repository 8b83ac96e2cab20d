package meter

import (
	"sync"
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

// ms converts milliseconds to nanoseconds.
func ms(n int64) int64 { return n * int64(time.Millisecond) }

// epoch is a time of this century.
var epoch = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano()

// crowd runs f on the given number of goroutines and waits for all of them.
func crowd(goroutines int, f func(g int)) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}
