package system

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
)

// shedding is a [checker] some of whose rules have a shed order.
type shedding struct {
	checker
	byLevel []shared.Pointer[shed.Refusals] // by index in the order
}

// Ask is like that of a checker.
func (rs *shedding) Ask(inv *engine.Invocation) engine.Verdict {
	if !inv.Inbound() {
		return engine.Verdict{}
	}
	for _, i := range rs.holding {
		g := rs.rules[i]
		if g.judge == nil {
			if !g.fits(inv) {
				return rs.refuse(i)
			}
		} else if v := shed.Ask(g.judge, inv, g.unitsOf(inv)); v != shed.Admitted {
			return rs.shed(i, inv, v)
		}
	}
	return engine.Verdict{}
}

// Take is like that of a checker.
func (rs *shedding) Take(inv *engine.Invocation) engine.Verdict {
	if !inv.Inbound() {
		return engine.Verdict{}
	}
	for _, i := range rs.takers {
		g := rs.rules[i]
		if g.judge == nil {
			if !g.take(inv) {
				return rs.refuse(i)
			}
		} else if v := g.takeByLevel(inv); v != shed.Admitted {
			return rs.shed(i, inv, v)
		}
	}
	return engine.Verdict{}
}

// Shadow is like that of a checker.
func (rs *shedding) Shadow(inv *engine.Invocation) {
	if !inv.Inbound() {
		return
	}
	for _, g := range rs.shadows {
		switch {
		case g.judge == nil && g.take(inv), g.judge != nil && g.takeByLevel(inv) == shed.Admitted:
			continue
		case g.judge != nil && g.ceiling != nil:
			g.ceiling.refuse()
		}
		g.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
}

// shed returns the refusal of a rule for a verdict.
func (rs *shedding) shed(place int, inv *engine.Invocation, v shed.Verdict) engine.Verdict {
	g := rs.rules[place]
	if g.ceiling != nil {
		g.ceiling.refuse()
	}
	all := rs.byLevel[place].Load()
	if all == nil {
		all = shed.NewRefusals(rs.refuse(place).Block, g, g.record)
		rs.byLevel[place].Store(all)
	}
	return engine.Verdict{Block: all.Of(v, inv.Level())}
}

// unitsInFlight are the inbound units, as a call sees them.
type unitsInFlight struct {
	inbound   *node.StatisticNode
	semaphore *meter.Semaphore
	lane      uint32
	n         int64 // of the call; 0 if they are among those in flight already
	above     int64 // that the limit lets in beyond it: a learned limit admits a call while it is not exceeded
	watch     bool  // take nothing
}

// unitsOf returns the units as a call sees them. A learned limit in shadow mode takes none: it looks at
// the calls that really run.
func (g *gate) unitsOf(inv *engine.Invocation) unitsInFlight {
	u := unitsInFlight{inbound: g.inbound, semaphore: g.inbound.NeedSemaphore(g.meter.Owner), lane: inv.Lane(), n: inv.Units()}
	if g.ceiling != nil {
		u.above = u.n
	}
	if held := inv.HoldsSemaphore(u.semaphore); held {
		u.n, u.watch = 0, true
	}
	u.watch = u.watch || g.ceiling != nil && g.rule.Mode == spec.Shadow
	return u
}

// Fits implements [shed.Units].
func (u unitsInFlight) Fits(limit int64) bool {
	limit += u.above
	return u.semaphore.Fits(u.n, limit) || u.inbound.Settle(u.semaphore) && u.semaphore.Fits(u.n, limit)
}

// Take implements [shed.Units].
func (u unitsInFlight) Take(limit int64) bool {
	if u.watch {
		return u.Fits(limit)
	}
	limit += u.above
	return u.semaphore.TryAcquire(u.lane, u.n, limit) || u.inbound.Settle(u.semaphore) && u.semaphore.TryAcquire(u.lane, u.n, limit)
}

// Release implements [shed.Units].
func (u unitsInFlight) Release() {
	if !u.watch {
		u.semaphore.Release(u.lane, u.n)
	}
}

// takeByLevel is like take, for a rule with a shed order.
func (g *gate) takeByLevel(inv *engine.Invocation) shed.Verdict {
	units := g.unitsOf(inv)
	v, reserved := shed.Take(g.judge, inv, units)
	if reserved && !units.watch {
		inv.ReserveSemaphore(units.semaphore)
	}
	return v
}

// openJudge makes the judge of a rule with a shed order. It continues with the counts of old, which
// may be nil.
func (g *gate) openJudge(at *engine.Binding, old *gate) {
	limit := g.inForce()
	var s *shed.Gate
	if old != nil && old.judge != nil && old.rule.Metric == g.rule.Metric {
		s = old.judge.Gate
		at.BeforeUse(func(int64) { s.SetLimit(limit, shed.Open) })
	} else {
		s = shed.NewGate(limit)
	}
	g.judge = shed.NewJudge(s, g.rule.Shed, g.rule.Floors)
}

// inForce returns the limit of a rule as of now.
func (g *gate) inForce() int64 {
	if g.ceiling == nil {
		return g.limit
	}
	if units := g.ceiling.units.Load(); units != none {
		return units
	}
	return shed.Open
}

// Stats holds the details of a rule with a shed order.
type Stats struct {
	// Levels are the calls of each level of criticality, the highest first.
	Levels []core.LevelStats `json:"levels"`
}

// Lines returns the calls of each level.
func (f Stats) Lines(time.Time) []string { return core.LevelLines("levels", f.Levels) }

// Resources returns nil: the calls are those of all resources.
func (f Stats) Resources() []core.ResourceDetails { return nil }
