package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
)

// 64 callers, some with failing calls, run while the clock advances, rules are loaded and breakers
// are forced: quiet periods always bring the breaker back, and nothing is held.
func TestEverythingAtOnce(t *testing.T) {
	rounds := figure.Size(50, 400, 2_000, 50_000)
	if race.Enabled {
		rounds = figure.Size(20, 60, 200, 2_000)
	}
	rule := quick("b")
	rule.Probes, rule.Ramp, rule.Threshold, rule.MinCalls = 2, 100*ms, 0.3, 5
	g := newGuard(t, rule)
	g.table().Listen(func(breaker.Change) { g.table().Status() })
	stop := make(chan struct{})
	var others, work sync.WaitGroup
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			g.clock.Advance(50 * ms)
			switch i % 10 {
			case 3:
				rule.Recovery = time.Duration(1+i%3) * 100 * ms
				assert.NoError(t, g.tryLoad([]breaker.Rule{rule}, nil))
			case 7:
				assert.NoError(t, g.table().Force("b", "", breaker.Force(i/10%3)))
			}
		}
	})
	var passed, refused atomic.Int64
	for i := range 64 {
		work.Go(func() {
			for n := range rounds {
				e, err := g.enter("orders")
				if err != nil {
					refused.Add(1)
					continue
				}
				passed.Add(1)
				switch {
				case (n+i)%3 == 0:
					e.Fail(errOwn)
				case (n+i)%7 == 0:
					e.Fail(core.ErrBlocked) // a neutral call
				}
				if (n+i)%50 != 0 {
					e.Exit()
				} else {
					defer e.Exit() // late
				}
			}
		})
	}
	work.Wait()
	close(stop)
	others.Wait()
	assert.Positive(t, passed.Load())
	assert.Zero(t, g.Failures())
	require.NoError(t, g.table().Force("b", "", breaker.NotForced))
	for range 5 {
		g.clock.Advance(time.Minute)
		for range 2 {
			g.call("orders", 0, nil)
		}
	}
	assert.Equal(t, breaker.Closed, g.state("b"))
}
