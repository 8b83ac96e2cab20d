package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// A rule reports each share of its limit when use reaches it, by the account of a naive twin: at most
// once an interval, over any traffic, settled costs, refusals by others and reloads.
func TestNoticesAreThoseOfTheTwin(t *testing.T) {
	r := random(t)
	calls, notices := 0, 0
	for range figure.Size(300, 300, 3_000, 30_000) {
		rule := flow.Rule{ID: "r", Resource: "orders", Interval: time.Second, Buckets: []int{2, 10, 50}[r.IntN(3)], Window: flow.Window(r.IntN(2))}
		if r.IntN(3) == 0 {
			rule.Unit = "tokens"
		}
		m := &trial.NoticeTwin{Interval: rule.Interval, Buckets: int64(rule.Buckets), Counting: int64(rule.Buckets)}
		if rule.Window == flow.Strict {
			m.Counting++
		}
		draw := func() {
			rule.Threshold = float64(r.IntN(12))
			m.Limit = int64(rule.Threshold)
			if r.IntN(2) == 0 || rule.Notify == nil {
				before := fmt.Sprint(m.Percents)
				rule.Notify, m.Percents = nil, nil
				for _, p := range [][]int64{{80, 100}, {1}, {100}, {50, 30, 99}}[r.IntN(4)] {
					m.Percents = append(m.Percents, p)
					rule.Notify = append(rule.Notify, fmt.Sprint(p, "%"))
				}
				if fmt.Sprint(m.Percents) != before {
					m.Reset()
				}
			}
		}
		draw()
		g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(trial.TakesAndRefuses{}, engine.After("flow"))}, rule)
		var got, want []string
		g.OnNotice(func(n core.Notice) {
			got = append(got, fmt.Sprint(n.At.UnixNano(), " ", n.Percent, "% ", n.Used, " of ", n.Limit, n.Kind, n.Rule, n.Resource, n.Interval, n.Missed))
		})
		look := func(now int64) {
			for _, p := range m.Notices(now) {
				want = append(want, fmt.Sprint(now, " ", p, "% ", m.Used(now), " of ", m.Limit, core.KindFlow, "r", "orders", rule.Interval, 0))
			}
		}
		type held struct {
			engine.Entry
			at, n int64
		}
		var open []held
		now := start
		for range 200 {
			switch k := r.IntN(40); {
			case k == 0:
				draw()
				g.load(rule)
			case k < 12:
				now = now.Add(time.Duration(r.Int64N(int64(150 * time.Millisecond))))
				g.clock.AdvanceTo(now.UnixNano())
			case k < 20 && len(open) > 0:
				i := r.IntN(len(open))
				if rule.Unit != "" {
					used := r.Int64N(5)
					open[i].Settle("tokens", used)
					at := open[i].at
					if used > open[i].n {
						at = now.UnixNano()
					}
					m.Take(at, used-open[i].n)
				}
				open[i].Exit()
				open = append(open[:i], open[i+1:]...)
			default:
				n, refused := 1+r.Int64N(3), r.IntN(6) == 0
				opts := []engine.Option{engine.Units(int(n))}
				if rule.Unit != "" {
					opts = append(opts, engine.Cost("tokens", n))
				}
				if refused {
					opts = append(opts, engine.Param("refuse", true))
				}
				e, err := g.Enter(t.Context(), "orders", opts)
				calls++
				fits := m.Used(now.UnixNano())+n <= m.Limit
				require.Equal(t, fits && !refused, err == nil)
				if err == nil {
					m.Take(now.UnixNano(), n)
					open = append(open, held{e, now.UnixNano(), n})
				}
				if !fits && m.Limit > 0 || err == nil {
					look(now.UnixNano())
				}
			}
		}
		for _, e := range open {
			e.Exit()
		}
		require.NoError(t, g.Close())
		require.Equal(t, want, got, "%+v", rule)
		require.Equal(t, int64(len(got)), g.Rules().RuleStats()[0].Notices)
		notices += len(got)
	}
	t.Log(calls, "calls,", notices, "notices")
	assert.Greater(t, notices, calls/50)
}
