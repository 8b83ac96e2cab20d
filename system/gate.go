package system

import (
	"time"

	"github.com/penstock-go/penstock/core"
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
	reading *reading
	ceiling *ceiling
}

func newGate(e *core.Engine, m *machine, now int64, r Rule, old *gate) (*gate, *succession) {
	g := &gate{rule: r, engine: e, inbound: &e.Tree().Inbound().StatisticNode, rehearsed: new(stat.Tally)}
	if old != nil {
		g.rehearsed = old.rehearsed
	}
	if r.Mode == core.Off { // it only keeps its figures for later
		return g, nil
	}
	g.limit, g.meter = r.limit(), r.meter()
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
		g.reading, _ = m.of(r.Metric)
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

// meter names what the rule needs on the inbound node. A shadow rule with a limit has
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
	fresh := g.inbound.FindWindow(g.meter) == nil
	g.window = g.inbound.Window(now, g.meter, before)
	if before == nil || !fresh { // one that was there knows more than the old
		return nil
	}
	return &succession{old.meter, before, g.window}
}

// succession is a window of a rule that goes on in a window of another shape. Calls
// under the old rules take from the old one until they hear of the new.
type succession struct {
	meter    node.Meter // of the old window
	from, to *stat.Window
}

// complete makes calls under the old rules take from the new window, unless another
// rule still wants the old one.
func (s *succession) complete(b *core.RulesetBuilder) {
	if !b.Keeps("", core.RoleInbound, s.meter) && s.to.Heir() == nil {
		s.from.HandOver(s.to, b.Engine.Now())
	}
}

// learn adjusts what the rule has learned to the latest sample.
func (g *gate) learn(now int64) {
	if g.ceiling == nil {
		return
	}
	v := g.reading.load()
	if v == unknown {
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
