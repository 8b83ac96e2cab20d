package breaker_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/proof/race"
	"github.com/penstock-go/penstock/proof/trial"
)

// 64 callers at a half-open breaker: in no round do more run than there are probes,
// however many are refused elsewhere, and the changes follow each other legally.
// known bug 81, 83
func TestProbesUnderFire(t *testing.T) {
	const callers, probes = 64, 3
	rounds := figure.Size(50, 2_000, 10_000, 100_000)
	if race.Enabled {
		rounds = figure.Size(20, 200, 500, 5_000)
	}
	rule := quick("b")
	rule.Probes = probes
	g := newGuard(t, rule)
	var mu sync.Mutex
	byNumber := make(map[uint64]breaker.Change)
	g.table().Listeners().Add(func(c breaker.Change) {
		mu.Lock()
		byNumber[c.Number] = c
		mu.Unlock()
	})
	g.changes = nil
	over, most, wrong := 0, int64(0), 0
	state, number := breaker.Closed, uint64(1)
	for round := range rounds {
		g.call("orders", 0, errOwn)
		g.clock.Advance(time.Second) // with the probes of this round to come
		var running, peak atomic.Int64
		entries := make([]core.Entry, callers)
		trial.Together(callers, func(i int) {
			e, err := g.enter("orders")
			if err != nil {
				return
			}
			n := running.Add(1)
			for {
				p := peak.Load()
				if n <= p || peak.CompareAndSwap(p, n) {
					break
				}
			}
			runtime.Gosched()
			entries[i] = e
		})
		most = max(most, peak.Load())
		if peak.Load() > probes {
			over++
		}
		bad := round%2 == 0
		var done sync.WaitGroup
		for _, e := range entries {
			done.Go(func() {
				if bad {
					e.Fail(errOwn)
				}
				e.Exit()
			})
		}
		done.Wait()
		for {
			c, ok := next(byNumber, number)
			if !ok {
				break
			}
			if c.From != state || !breaker.Legal(c.From, c.To) {
				wrong++
			}
			state, number = c.To, c.Number
		}
		clear(byNumber)
		g.changes = nil
		if bad {
			require.Equal(t, breaker.Open, g.state("b"))
			g.clock.Advance(time.Second)
			for range probes {
				assert.Equal(t, "pass", g.call("orders", 0, nil))
			}
		}
		require.Equal(t, breaker.Closed, g.state("b"))
		for {
			c, ok := next(byNumber, number)
			if !ok {
				break
			}
			state, number = c.To, c.Number
		}
		clear(byNumber)
	}
	assert.Equal(t, int64(probes), most, "a round with fewer shows nothing")
	assert.Zero(t, wrong, "changes that don't follow from the one before")
	figure.Report(t, figure.Figure{Name: "rounds with too many probes, 64 callers", Value: float64(over), N: int64(rounds)})
}

// next is the change after the one of that number.
func next(changes map[uint64]breaker.Change, number uint64) (first breaker.Change, ok bool) {
	for n, c := range changes {
		if n > number && (!ok || n < first.Number) {
			first, ok = c, true
		}
	}
	return first, ok
}

// 64 callers, some whose calls fail, while the clock runs, rules are loaded and
// breakers forced: whatever happens, quiet periods bring it back, and nothing is held.
func TestEverythingAtOnce(t *testing.T) {
	rounds := figure.Size(50, 400, 2_000, 50_000)
	if race.Enabled {
		rounds = figure.Size(20, 60, 200, 2_000)
	}
	rule := quick("b")
	rule.Probes, rule.Ramp, rule.Threshold, rule.MinCalls = 2, 100*ms, 0.3, 5
	g := newGuard(t, rule)
	g.table().Listeners().Add(func(breaker.Change) { g.table().Status() })
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
				if (n+i)%3 == 0 {
					e.Fail(errOwn)
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

// 8 callers, of whose calls some fail, while others read the figures: in the end every
// call has counted, once.
func TestEveryCallCounts(t *testing.T) {
	const callers = 8
	rounds := figure.Size(500, 10_000, 100_000, 1_000_000)
	rule := quick("b")
	rule.Threshold = 1
	g := newGuard(t, rule)
	g.call("orders", 0, nil)
	trial.Together(callers, func(i int) {
		for n := range rounds {
			var failure error
			if n%100 == i {
				failure = errOwn
			}
			g.call("orders", 0, failure)
			if n%1000 == i {
				g.table().Status()
			}
		}
	})
	s := g.status("b", "orders")
	figure.Report(t, figure.Figure{Name: "calls of a closed breaker that did not count, 8 callers",
		Value: math.Abs(float64(callers*rounds + 1 - int(s.Calls))), N: int64(callers * rounds)})
	assert.Equal(t, int64(callers*rounds/100), s.Bad)
	assert.Equal(t, breaker.Closed, s.State)
}
