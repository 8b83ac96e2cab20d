package system

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// gate is one rule at work, for all resources. Which of the fields below the first
// four are set depends on the rule's metric.
type gate struct {
	rule      Rule
	engine    *core.Engine
	inbound   *node.StatisticNode
	rehearsed *stat.Tally // refusals of a shadow rule

	limit   int64      // of QPS and Concurrency
	meter   node.Meter // of QPS, Concurrency and steady rules
	window  *stat.Window
	times   *times
	reading *core.Reading
	ceiling *ceiling

	next shared.Pointer[gate] // that went on from this one in a window of another shape
}

func newGate(e *core.Engine, now int64, revision uint64, r Rule, old *gate) (*gate, *succession) {
	g := &gate{rule: r, engine: e, inbound: &e.Tree().Inbound().StatisticNode, rehearsed: new(stat.Tally)}
	if old != nil {
		g.rehearsed = old.rehearsed
	}
	if r.Mode == core.Off { // it only keeps its figures for later
		return g, nil
	}
	g.limit, g.meter = r.limit(), r.meterAfter(old, revision)
	switch r.Metric {
	case QPS:
		return g, g.openWindow(now, old)
	case Concurrency:
		g.inbound.NeedGauge(g.meter.Owner)
	case RT:
		g.times = newTimes(r.shape())
		if old != nil && old.times != nil {
			g.times.seedFrom(old.times, now)
		} else {
			g.times.seed(&g.inbound.Counters, now)
		}
	case Load, CPU:
		g.reading = e.Sampler().Reading(r.Metric.quantity())
		if r.Strategy == Steady {
			g.inbound.NeedGauge(g.meter.Owner)
			g.ceiling = newCeiling()
			if old != nil && old.ceiling != nil && old.rule.Metric == r.Metric {
				g.ceiling.inherit(old.ceiling)
			}
		}
	}
	return g, nil
}

// goesOnFrom reports whether the rule counts the same calls as the one before it, both
// in windows.
func (r Rule) goesOnFrom(old *gate) bool {
	return old != nil && old.window != nil && r.Metric == QPS && r.meter().Owner == old.meter.Owner
}

// meterAfter names what a rule that comes after old, which may be nil, needs on the
// inbound node. One that comes to another shape gets a window that there never was.
func (r Rule) meterAfter(old *gate, revision uint64) node.Meter {
	m := r.meter()
	switch {
	case !r.goesOnFrom(old):
	case m.Shape == old.meter.Shape:
		return old.meter
	default:
		m.Era = node.Era{Rule: r.ID, Revision: revision}
	}
	return m
}

// meter names what a rule that comes after none needs on the inbound node. A shadow rule with a limit has
// its own: there counts only what the rule would admit.
func (r Rule) meter() node.Meter {
	m := node.Meter{}
	if r.Metric == QPS {
		m.Shape = r.shape()
	}
	if r.Mode == core.Shadow && (r.Metric == QPS || r.Metric == Concurrency) {
		m.Owner = r.ID
	}
	return m
}

// gauged reports whether the rule needs the gauge of the inbound node.
func (r Rule) gauged() bool {
	return r.Metric == Concurrency || r.Metric.sampled() && r.Strategy == Steady
}

// openWindow makes the window, so that it counts from now on. One that goes on from a
// window of another shape is seeded from that.
func (g *gate) openWindow(now int64, old *gate) *succession {
	var before *stat.Window
	if old != nil && old.window != nil && (old.rule.Mode != core.Shadow || g.rule.Mode == core.Shadow) {
		before = old.window // but what a rehearsal has counted is not what really passed
	}
	g.window = g.inbound.Window(now, g.meter, before)
	if !g.rule.goesOnFrom(old) || old.meter == g.meter {
		return nil
	}
	return &succession{old: old, new: g}
}

// succession is a rule that goes on in a window of another shape. It was seeded when the
// rule was compiled; calls under the old rules have taken from the old window since, and
// will until they hear of the new.
type succession struct{ old, new *gate }

// complete comes before the new rules are published. It hands over what was taken, and
// tells the old rule of the new one in the same step: who took earlier is in what is handed
// over, who took later sees the new rule and takes there as well. Who is seen both ways
// counts twice, never not at all. Nobody takes from the new window before: what is handed
// over replaces it, and it could not be given back. The new window is the new rule's alone,
// see [node.Era].
func (s *succession) complete(now int64) {
	s.new.window.Reseed(s.old.window, now, func() { s.old.next.Store(s.new) })
}

// learn adjusts what the rule has learned to the latest sample.
func (g *gate) learn(now int64) {
	if g.ceiling == nil {
		return
	}
	v := g.reading.Value()
	if v == core.Unknown {
		g.ceiling.units.Store(none)
		return
	}
	off := v/g.rule.Threshold - 1
	var e evidence
	var known bool
	if off > 0 || g.ceiling.units.Load() != none {
		e, known = gather(g.inbound, now, g.engine.Config().Interval)
	}
	gain := gainOfCPU
	if g.rule.Metric == Load {
		gain = gainOfLoad
	}
	g.ceiling.learn(off, gain, e, known)
}

// RetryAfter is when one more unit would be admitted, for QPS; 0 where that depends on
// calls that complete.
func (g *gate) RetryAfter() time.Duration {
	if g.window == nil || g.rule.Threshold == 0 {
		return 0
	}
	after, _ := g.window.RetryAfter(g.engine.Now(), 1, g.limit)
	return after
}
