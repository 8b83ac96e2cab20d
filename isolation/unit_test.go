package isolation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/isolation"
)

func bytes(n int64) engine.Option { return engine.Cost("bytes", n) }

// room limits the bytes in flight.
func room(n int) isolation.Rule {
	return isolation.Rule{ID: "room", Resource: "orders", Unit: "bytes", Threshold: n}
}

// twin is the naive twin of a rule with a unit: the units that each call holds.
type twin struct {
	rule isolation.Rule
	held map[int]int64 // by call
}

func (w *twin) amount(cost int64) int64 {
	if cost == 0 {
		cost = int64(w.rule.Estimate)
	}
	if w.rule.MaxReserve > 0 {
		cost = min(cost, int64(w.rule.MaxReserve))
	}
	return cost
}

func (w *twin) fits(n int64) bool {
	sum := n
	for _, held := range w.held {
		sum += held
	}
	return n == 0 || w.rule.Mode == spec.Shadow || sum <= int64(w.rule.Threshold)
}

// Rules with units decide as their twins do, which remember the units of each call: calls enter, are
// settled below and beyond their reservation, twice or never, ask for more, and exit, while the rules
// change their other fields.
func TestUnitsAreTheirTwins(t *testing.T) {
	r := chance.Source(t)
	for range figure.Size(100, 400, 20_000, 100_000) {
		units := []string{"bytes", "rows"}
		var twins []*twin
		for i := range 1 + r.IntN(3) {
			twins = append(twins, &twin{held: map[int]int64{}, rule: isolation.Rule{
				ID: fmt.Sprint(i), Resource: "orders", Unit: units[r.IntN(2)],
			}})
		}
		g := newGuard(t)
		load := func() {
			var all []isolation.Rule
			for _, w := range twins {
				w.rule.Threshold, w.rule.Estimate, w.rule.MaxReserve = 100+r.IntN(900), 0, 0
				if r.IntN(2) == 0 {
					w.rule.Estimate = float64(1 + r.IntN(50))
				}
				if r.IntN(3) == 0 {
					w.rule.MaxReserve = float64(1 + r.IntN(200))
				}
				all = append(all, w.rule)
			}
			g.load(all...)
		}
		load()
		type call struct {
			engine.Entry
			number         int
			named, granted map[string]int64
			reserved       []int64 // by twin, on entry
			settled        map[string]bool
		}
		var open []*call
		for number := range 300 {
			switch {
			case r.IntN(20) == 0:
				load()
			case r.IntN(2) == 0 && len(open) < 64:
				c := &call{number: number, named: map[string]int64{}, granted: map[string]int64{}, settled: map[string]bool{}}
				var opts []engine.Option
				for _, unit := range units {
					if r.IntN(3) > 0 {
						c.named[unit] = 1 + r.Int64N(300)
						opts = append(opts, engine.Cost(unit, c.named[unit]))
					}
				}
				fits := true
				for _, w := range twins {
					n := w.amount(c.named[w.rule.Unit])
					c.reserved = append(c.reserved, n)
					fits = fits && w.fits(n)
				}
				var err error
				c.Entry, err = g.Enter(t.Context(), "orders", opts)
				require.Equal(t, fits, err == nil, "%v", err)
				if err != nil {
					continue
				}
				for i, w := range twins {
					w.held[number] = c.reserved[i]
				}
				open = append(open, c)
			case len(open) == 0:
			case r.IntN(3) == 0:
				i := r.IntN(len(open))
				open[i].Exit()
				for _, w := range twins {
					delete(w.held, open[i].number)
				}
				open = append(open[:i], open[i+1:]...)
			case r.IntN(2) == 0:
				c, unit, n := open[r.IntN(len(open))], units[r.IntN(2)], 1+r.Int64N(100)
				fits := true
				for _, w := range twins {
					fits = fits && (w.rule.Unit != unit || w.fits(n))
				}
				err := c.More(t.Context(), unit, n)
				require.Equal(t, fits && !c.settled[unit], err == nil, "%v", err)
				if err != nil {
					continue
				}
				c.granted[unit] += n
				for _, w := range twins {
					if w.rule.Unit == unit {
						w.held[c.number] += n
					}
				}
			default:
				c, unit, used := open[r.IntN(len(open))], units[r.IntN(2)], r.Int64N(400)
				c.Settle(unit, used)
				known := c.named[unit] > 0 || c.granted[unit] > 0
				for i, w := range twins {
					if w.rule.Unit != unit {
						continue
					}
					known = known || c.reserved[i] > 0
					if c.settled[unit] || c.reserved[i] == 0 && c.granted[unit] == 0 {
						continue
					}
					w.held[c.number] = used
				}
				c.settled[unit] = c.settled[unit] || known
			}
		}
		for _, c := range open {
			c.Exit()
		}
		g.load(room(1000))
		g.enter(bytes(1000)).Exit()
	}
}

// A rule keeps the units in flight when its mode, threshold or name changes, and starts empty with
// another unit. Calls without the unit pass, even with a threshold of 0.
func TestUnitsThroughReloads(t *testing.T) {
	rule := room(100)
	g := newGuard(t, rule)
	e := g.enter(bytes(80))
	g.refused(bytes(21))
	for _, mode := range []spec.Mode{spec.Shadow, spec.Enforce, spec.Off, spec.Enforce} {
		rule.Mode = mode
		g.load(rule)
		if mode == spec.Enforce {
			g.enter(bytes(20)).Exit()
			g.refused(bytes(21))
		}
	}
	rule.Threshold = 50
	g.load(rule)
	g.refused(bytes(1))
	e.Settle("bytes", 20)
	g.enter(bytes(30)).Exit()
	g.refused(bytes(31))
	rule.Unit = "rows"
	g.load(rule)
	g.enter(engine.Cost("rows", 50)).Exit()
	e.Exit()
	rule.Threshold = 0
	g.load(rule)
	g.enter(bytes(1)).Exit()
	g.enter().Exit()
	g.refused(engine.Cost("rows", 1))
}

// In shadow mode units that fit are held until the call is settled or exits, and others are counted.
func TestShadowOfUnits(t *testing.T) {
	rule := room(100)
	rule.Mode = spec.Shadow
	g := newGuard(t, rule)
	blocked := func() int64 { return g.figures("room").ShadowBlocked }
	e := g.enter(bytes(80))
	g.enter(bytes(21)).Exit()
	assert.EqualValues(t, 1, blocked())
	e.Settle("bytes", 10)
	g.enter(bytes(90)).Exit()
	require.NoError(t, e.More(t.Context(), "rows", 1000))
	e.Exit()
	assert.EqualValues(t, 1, blocked())
	e = g.enter(bytes(80))
	require.NoError(t, e.More(t.Context(), "bytes", 21))
	assert.EqualValues(t, 2, blocked())
	e.Exit()
}

// Rules with units and rules of calls on one resource decide together: a call that one of them
// refuses holds nothing of the others, and a queue passes its units on.
func TestUnitsBesideCalls(t *testing.T) {
	g := newGuard(t, queued(1, 1, 100*ms), room(100))
	a := g.enter(bytes(60))
	b := g.waits("b", bytes(40)) // holds them in the queue
	g.refused(bytes(1))
	a.Exit()
	b.exit()
	g.enter(bytes(100)).Exit()
	a = g.enter(bytes(50))
	g.refused(bytes(51))
	g.load(permits(1), room(100))
	g.refused(bytes(50))
	a.Exit()
	g.enter(bytes(100)).Exit()
	assert.Equal(t, []core.UnitCounts{{Reserved: 350, Refused: 102}}, totals(t, g))
}

func totals(t *testing.T, g *guard) (all []core.UnitCounts) {
	t.Helper()
	r, ok := g.FindResource("orders")
	require.True(t, ok)
	for _, u := range r.UnitStats() {
		all = append(all, u.Total)
	}
	return all
}

// Explain asks about a call with a cost, takes nothing, and tells calls without one why the rule
// doesn't judge them.
func TestExplainUnits(t *testing.T) {
	g := newGuard(t, room(2e9))
	defer g.enter(bytes(15e8)).Exit()
	judge := func(opts ...engine.Option) core.ExplainedRule {
		x, err := g.Explain(t.Context(), "orders", opts)
		require.NoError(t, err)
		require.Len(t, x.Rules, 1)
		return x.Rules[0]
	}
	for range 2 {
		assert.Equal(t, core.Passes, judge(bytes(5e8)).Outcome)
		refused := judge(bytes(5e8 + 1))
		assert.Equal(t, core.Refused, refused.Outcome)
		require.Len(t, refused.Measures, 1)
		m := refused.Measures[0]
		assert.Equal(t, "bytes in flight", m.Of)
		assert.Equal(t, []float64{15e8, 2e9, 5e8}, []float64{m.Measured, m.Limit, float64(*m.Remaining)})
	}
	none := judge()
	assert.Equal(t, core.NotJudged, none.Outcome)
	assert.Equal(t, "applies only to calls with a cost in bytes", none.Why)
}
