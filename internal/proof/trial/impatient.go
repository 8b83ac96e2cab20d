package trial

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
)

// Impatient runs callers that offer twice the rate of a throttle: 100 calls per second, evenly, to
// "orders", for the given seconds. Each is canceled after 200 ms, like a call without a deadline
// whose client disconnects; so they leave in order of arrival. It returns how many pass in each
// second. It must run in a synctest bubble.
func Impatient(t *testing.T, seconds int, load func(*engine.Engine), opts ...engine.Option) []int {
	t.Helper()
	passed := make([]int, seconds+1)
	synctest.Test(t, func(t *testing.T) {
		e, _ := Engine(t, engine.Config{Clock: clocks.NewSystem()})
		load(e)
		began := time.Now()
		var mu sync.Mutex
		var calls sync.WaitGroup
		for range seconds * 100 {
			calls.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(200*time.Millisecond, cancel).Stop()
				entry, err := e.Enter(ctx, "orders", opts)
				entry.Exit()
				if err == nil {
					mu.Lock()
					passed[time.Since(began)/time.Second]++
					mu.Unlock()
				}
				cancel()
			})
			time.Sleep(10 * time.Millisecond)
		}
		calls.Wait()
	})
	return passed
}
