package system

import (
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// gate is one rule in effect, for all resources. The rule's metric determines which of the fields
// after the first four are set.
type gate struct {
	rule    Rule
	engine  *engine.Engine
	inbound *node.StatisticNode
	record  *engine.Record

	limit   int64       // of QPS and Concurrency
	meter   meter.Meter // for QPS, Concurrency and steady rules
	window  *stat.Window
	times   *times
	reading *sampler.Reading
	ceiling *ceiling
	judge   *shed.Judge // nil without a shed order

	// next is the gate that continued this one in a window of another shape. All successive gates
	// that meter in the same window share it: a call may still be decided by the first of them.
	next *shared.Pointer[gate]
}

func newGate(e *engine.Engine, at *engine.Binding, revision uint64, r Rule, record *engine.Record, old *gate) *gate {
	g := &gate{rule: r, record: record, engine: e, inbound: &e.Tree().Inbound().StatisticNode, next: new(shared.Pointer[gate])}
	if r.Mode == spec.Off { // it only keeps its counters for later
		return g
	}
	g.limit, g.meter = r.limit(), r.meterAfter(old, revision)
	switch r.Metric {
	case QPS:
		g.openWindow(at, old)
	case Concurrency:
		g.inbound.NeedSemaphore(g.meter.Owner)
	case RT:
		g.times = newTimes(r.shape())
		if old != nil && old.times != nil {
			g.times.seedFrom(old.times, at.Now)
		} else {
			g.times.seed(&g.inbound.Counters, at.Now)
		}
	case Load, CPU:
		g.reading = e.Sampler().Reading(r.Metric.quantity())
		if r.Strategy == Steady {
			g.inbound.NeedSemaphore(g.meter.Owner)
			g.ceiling = newCeiling()
			if old != nil && old.ceiling != nil && old.rule.Metric == r.Metric {
				g.ceiling.inherit(old.ceiling)
			}
		}
	}
	if r.Shed != spec.ShedNone {
		g.openJudge(at, old)
	}
	return g
}

// goesOnFrom reports whether the rule counts the same calls as its predecessor, both in windows.
func (r Rule) goesOnFrom(old *gate) bool {
	return old != nil && old.window != nil && r.Metric == QPS && r.meter().Owner == old.meter.Owner
}

// meterAfter names the meter that a rule following old, which may be nil, needs on the inbound
// node. A rule that changes its shape gets a fresh window.
func (r Rule) meterAfter(old *gate, revision uint64) meter.Meter {
	m := r.meter()
	switch {
	case !r.goesOnFrom(old):
	case m.Shape == old.meter.Shape:
		return old.meter
	default:
		m.Era = meter.Era{Rule: r.ID, Revision: revision}
	}
	return m
}

// meter names the meter that a rule without a predecessor needs on the inbound node. A shadow rule
// with a limit has its own meter, which counts only calls that it would admit.
func (r Rule) meter() meter.Meter {
	m := meter.Meter{}
	if r.Metric == QPS {
		m.Shape = r.shape()
	}
	if r.Mode == spec.Shadow && (r.Metric == QPS || r.Metric == Concurrency) {
		m.Owner = r.ID
	}
	return m
}

// countsInFlight reports whether the rule needs the semaphore of the inbound node.
func (r Rule) countsInFlight() bool {
	return r.Metric == Concurrency || r.Metric.sampled() && r.Strategy == Steady
}

// openWindow creates the window, so that it counts from now on.
//
// A window that continues one of another shape gets the units taken there when the rules come into
// force: calls under the old rules take from the old window until they see the new one, and the old
// gate is linked to the new one in the same step. A call that took earlier is part of the handover,
// and holds its units in the new window too (see [stat.Window.Follow]); a call that takes later sees
// the new gate and takes there as well. No call takes from the new window before that: the handover
// replaces its counts. The window belongs to the new rule alone; see [meter.Era].
func (g *gate) openWindow(at *engine.Binding, old *gate) {
	if g.rule.goesOnFrom(old) && old.meter != g.meter {
		g.window = g.inbound.Window(at.Now, g.meter, nil)
		at.BeforeUse(func(now int64) { g.window.Reseed(old.window, now, func() { old.next.Store(g) }) })
		return
	}
	var before *stat.Window
	if old != nil && old.window != nil && (old.rule.Mode != spec.Shadow || g.rule.Mode == spec.Shadow) {
		before = old.window // but a shadow rule's counts are not the calls that really passed
	}
	g.window = g.inbound.Window(at.Now, g.meter, before)
	if g.rule.goesOnFrom(old) && old.meter == g.meter {
		g.next = old.next
	}
}

// learn adjusts the learned limit to the latest sample.
func (g *gate) learn(now int64) {
	if g.ceiling == nil {
		return
	}
	if g.judge != nil {
		defer func() { g.judge.SetLimit(g.inForce(), shed.Open) }()
	}
	v := g.reading.Value()
	if v == sampler.Unknown {
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

// RetryAfter returns the time until one more unit would be admitted, for QPS. It is unknown if that
// depends on calls that complete.
func (g *gate) RetryAfter() (wait time.Duration, known bool) {
	if g.window == nil {
		return 0, false
	}
	return g.window.RetryAfter(g.engine.Now(), 1, g.limit)
}

// Limit returns the threshold of rules that limit units, and the learned limit of a steady rule,
// while it limits.
func (g *gate) Limit() (limit float64, known bool) {
	switch {
	case g.rule.Metric == QPS, g.rule.Metric == Concurrency:
		return g.rule.Threshold, true
	case g.ceiling == nil:
		return 0, false
	}
	units := g.ceiling.units.Load()
	return float64(units), units != none
}
