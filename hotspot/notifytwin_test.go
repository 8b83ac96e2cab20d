package hotspot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// A rule reports each share of each value's limit when the value's use reaches it, by the account of a
// naive twin: at most once an interval, over any traffic, settled costs, refusals by others, plans and
// reloads.
func TestNoticesOfValuesAreThoseOfTheTwin(t *testing.T) {
	r := random(t)
	calls, notices := 0, 0
	for range figure.Size(200, 200, 3_000, 30_000) {
		rule := hotspot.Rule{ID: "r", Param: "user", Interval: time.Second, Exceptions: []hotspot.Exception{{Value: hotspot.ValueOf("u0"), Threshold: 7}}}
		if r.IntN(3) == 0 {
			rule.Unit = "tokens"
		}
		twins := make(map[string]*trial.NoticeTwin)
		for i := range 4 {
			twins[fmt.Sprint("u", i)] = &trial.NoticeTwin{Interval: rule.Interval, Buckets: 10, Counting: 11}
		}
		draw := func() {
			rule.Threshold, rule.Plans = float64(r.IntN(9)), map[string]float64{"pro": float64(r.IntN(12))}
			if r.IntN(2) > 0 && rule.Notify != nil {
				return
			}
			percents := [][]int64{{80, 100}, {1}, {100}, {50, 30, 99}}[r.IntN(4)]
			rule.Notify = nil
			for _, p := range percents {
				rule.Notify = append(rule.Notify, fmt.Sprint(p, "%"))
			}
			for _, m := range twins {
				if fmt.Sprint(m.Percents) != fmt.Sprint(percents) {
					m.Reset()
				}
				m.Percents = percents
			}
		}
		draw()
		g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(trial.TakesAndRefuses{}, engine.After("hotspot"))}, rule)
		var got, want []string
		g.OnNotice(func(n core.Notice) {
			got = append(got, fmt.Sprint(n.At.UnixNano(), n.Value, n.Percent, "% ", n.Used, " of ", n.Limit))
		})
		type held struct {
			engine.Entry
			m     *trial.NoticeTwin
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
				o := open[i]
				if used := r.Int64N(5); rule.Unit != "" {
					o.Settle("tokens", used)
					if used > o.n {
						o.at = now.UnixNano()
					}
					o.m.Take(o.at, used-o.n)
				}
				o.Exit()
				open = append(open[:i], open[i+1:]...)
			default:
				user, n, refused := fmt.Sprint("u", r.IntN(4)), 1+r.Int64N(3), r.IntN(6) == 0
				m := twins[user]
				opts := []engine.Option{engine.Units(int(n)), engine.Param("user", user)}
				m.Limit = int64(rule.Threshold)
				if r.IntN(2) == 0 {
					opts = append(opts, engine.Plan("pro"))
					m.Limit = int64(rule.Plans["pro"])
				}
				if user == "u0" {
					m.Limit = 7
				}
				if rule.Unit != "" {
					opts = append(opts, engine.Cost("tokens", n))
				}
				if refused {
					opts = append(opts, engine.Param("refuse", true))
				}
				e, err := g.Enter(t.Context(), "orders", opts)
				calls++
				at := now.UnixNano()
				fits := m.Limit > 0 && m.Used(at)+n <= m.Limit
				require.Equal(t, fits && !refused, err == nil)
				if err == nil {
					m.Take(at, n)
					open = append(open, held{e, m, at, n})
				}
				if !fits || err == nil {
					for _, p := range m.Notices(at) {
						want = append(want, fmt.Sprint(at, hotspot.ValueOf(user), p, "% ", m.Used(at), " of ", m.Limit))
					}
				}
			}
		}
		for _, o := range open {
			o.Exit()
		}
		require.NoError(t, g.Close())
		require.Equal(t, want, got, "%+v", rule)
		require.Equal(t, int64(len(got)), g.figures("r").Notices)
		notices += len(got)
	}
	t.Log(calls, "calls,", notices, "notices")
	assert.Greater(t, notices, calls/50)
}

// However few values a rule tracks, and whichever behavior of its windows, no value has two notices of a
// share within an interval.
func TestNoticesOfValuesWithoutRoom(t *testing.T) {
	r := random(t)
	notices := 0
	for range figure.Size(100, 100, 1_000, 10_000) {
		rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 3, MaxValues: 1 + r.IntN(3), Notify: []string{"30%", "100%"}, Window: hotspot.Window(r.IntN(2))}
		g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(trial.TakesAndRefuses{}, engine.After("hotspot"))}, rule)
		type key struct {
			v       argument.Value
			percent int
		}
		last := make(map[key]time.Time)
		g.OnNotice(func(n core.Notice) {
			k := key{n.Value, n.Percent}
			if before, ok := last[k]; ok && n.At.Sub(before) < rule.Interval+time.Second {
				t.Errorf("%v: %d%% at %v, and at %v", n.Value, n.Percent, before, n.At)
			}
			last[k] = n.At
			notices++
		})
		now := time.Duration(0)
		for range 300 {
			if r.IntN(3) == 0 {
				now += time.Duration(r.Int64N(int64(400 * ms)))
				g.at(now)
			}
			opts := []engine.Option{engine.Param("user", r.IntN(6))}
			if r.IntN(4) == 0 {
				opts = append(opts, engine.Param("refuse", true))
			}
			e, _ := g.Enter(t.Context(), "orders", opts)
			e.Exit()
		}
		require.NoError(t, g.Close())
	}
	t.Log(notices, "notices")
	assert.Greater(t, notices, 1000)
}
