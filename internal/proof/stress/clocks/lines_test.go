package clocks

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/figure"
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

// The clocks of two processors differ, and callers read sometimes one and sometimes the other. The
// first leap ahead can't be distinguished from idle time. After it, a minute of real time admits no
// more than a minute's worth, and no call waits longer than an interval. known bug 28, 30
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
			// Whole intervals, one that has begun, one more at the leap, and the queue.
			most := limit*(int(length/interval)+2) + limit/2 + 1
			if admitted > most {
				t.Errorf("clocks %v apart: %d admitted, %d allowed", apart, admitted, most)
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
