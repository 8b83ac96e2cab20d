package clocks

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/proof/books"
	"github.com/penstock-go/penstock/proof/figure"
	"github.com/penstock-go/penstock/rules"
)

func newGuard(t testing.TB, clock clocks.Clock, flowRules ...flow.Rule) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(rules.Set{Flow: flowRules}))
	books.Keep(t, g.Engine())
	return g
}

// One clock a processor, and they differ: callers read now this one and now that one.
// The first leap ahead can't be told from an idle time. After it, a minute of real
// time admits a minute's worth and not more, and nobody waits for longer than an
// interval. known bug 28, 30
func TestClocksOfTwoProcessors(t *testing.T) {
	rnd := random(t)
	problems, calls := 0, 0
	for _, apart := range []time.Duration{1, 50 * time.Microsecond, ms, 9 * ms, 11 * ms, 100 * ms, time.Second, time.Minute, time.Hour, year} {
		for _, b := range []flow.Rule{reject, queue, with(func(r *flow.Rule) { r.Window = flow.Strict }), with(func(r *flow.Rule) { r.Buckets = 1 })} {
			s := newSource()
			g := newGuard(t, s, b)
			admitted, longest, last := 0, time.Duration(0), time.Duration(0)
			const length = 20 * time.Second
			for s.real < length {
				s.set = 0
				if rnd.IntN(2) == 0 {
					s.set = apart
				}
				calls++
				if e, err := g.Entry(t.Context(), "orders"); err == nil {
					longest, last = max(longest, s.real-last), s.real
					admitted++
					e.Exit()
				}
				s.real += 5 * ms
			}
			// Whole intervals, one that has begun, one more at the leap, and what may
			// be queued.
			most := limit*(int(length/interval)+2) + limit/2 + 1
			if admitted > most {
				t.Errorf("clocks %v apart: %d admitted, %d at most", apart, admitted, most)
				problems++
			}
			if most := interval + interval/10 + 2*tolerance; longest > most {
				t.Errorf("clocks %v apart: nobody was admitted for %v", apart, longest)
				problems++
			}
		}
	}
	figure.Report(t, figure.Figure{Name: "violations on clocks that differ by processor", Value: float64(problems), N: int64(calls), Seed: *seed})
}

// wall is a source for many goroutines.
type wall struct{ now atomic.Int64 }

func (c *wall) Now() int64                                       { return c.now.Load() }
func (c *wall) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// Callers on many goroutines while the clock is set back again and again: they get
// no more than real time allows, and once it runs quietly again, all of that.
// known bug 10, 23, 24
func TestParallelCallersWhileTheClockIsSetBack(t *testing.T) {
	const callers = 8
	each := figure.Size(2_000, 20_000, 200_000, 2_000_000)
	steps := sizes[:len(sizes)-1] // a year each time would take the clock out of the range of times
	for _, b := range []flow.Rule{reject, with(func(r *flow.Rule) { r.Window = flow.Strict }), with(func(r *flow.Rule) { r.Buckets = 1 })} {
		c := new(wall)
		c.now.Store(newSource().begin)
		g := newGuard(t, c, b)
		var admitted, real atomic.Int64
		var done sync.WaitGroup
		for i := range callers {
			done.Go(func() {
				for n := range each {
					if i == 0 && n%97 == 0 {
						c.now.Add(-int64(steps[n/97%len(steps)]))
					}
					real.Add(int64(ms))
					c.now.Add(int64(ms))
					if e, err := g.Entry(t.Context(), "orders"); err == nil {
						admitted.Add(1)
						e.Exit()
					}
				}
			})
		}
		done.Wait()
		assert.LessOrEqual(t, admitted.Load(), limit*(real.Load()/int64(interval)+2))
		after := 0
		for range 3 * interval / ms {
			c.now.Add(int64(ms))
			if e, err := g.Entry(t.Context(), "orders"); err == nil {
				after++
				e.Exit()
			}
		}
		assert.GreaterOrEqual(t, after, 2*limit)
		assert.LessOrEqual(t, after, 4*limit)
	}
}
