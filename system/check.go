package system

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// Rules are the system rules as they apply to the calls of one resource. They are
// safe for concurrent use.
type Rules struct {
	rules  []rule // as declared: the order in which they are asked
	takers []rule // those that take something, or rehearse

	refusals []*refusal // of the resource, to go on from
}

// rule is a rule and what it says to calls of the resource that it refuses.
type rule struct {
	*gate
	refusal *core.BlockError
}

func newRules(rules []rule, refusals []*refusal) *Rules {
	rs := &Rules{rules: rules, refusals: refusals}
	for _, r := range rules {
		if r.takes() || r.gate.rule.Mode == core.Shadow {
			rs.takers = append(rs.takers, r)
		}
	}
	// The scarcest takes first, for it refuses most calls, and those then hold nothing
	// of the others.
	slices.SortStableFunc(rs.takers, func(a, b rule) int { return cmp.Compare(a.gate.rule.abundance(), b.gate.rule.abundance()) })
	return rs
}

// abundance says how much a rule has to give, roughly: units a second, or at once.
func (r Rule) abundance() float64 {
	if r.Metric == QPS {
		return r.Threshold / r.Interval.Seconds()
	}
	return r.Threshold
}

// Ask returns the first refusal, taking nothing. A shadow rule refuses nobody, and so
// does any rule a call that is not inbound.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	if !inv.Inbound() {
		return core.Verdict{}
	}
	for _, r := range rs.rules {
		if r.gate.rule.Mode == core.Enforce && !r.fits(inv) {
			return core.Verdict{Block: r.refusal}
		}
	}
	return core.Verdict{}
}

// Take lets the rules with a limit take. The others have nothing to give: that they
// were asked is their verdict.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if !inv.Inbound() {
		return core.Verdict{}
	}
	for _, r := range rs.takers {
		switch ok := r.take(inv); {
		case ok:
		case r.gate.rule.Mode == core.Shadow:
			r.rehearsed.Add(inv.Lane(), 1)
		default:
			return core.Verdict{Block: r.refusal}
		}
	}
	return core.Verdict{}
}

// DecidesAtOnce reports whether Decide does what Ask and Take do: where there is one rule,
// which holds.
func (rs *Rules) DecidesAtOnce() bool {
	return len(rs.rules) == 1 && rs.rules[0].gate.rule.Mode == core.Enforce
}

// Decide lets the rule decide about an inbound call.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	r := &rs.rules[0]
	if !inv.Inbound() {
		return nil
	}
	if w := r.window; w != nil && inv.HeldBucket(w) == nil {
		bucket, ok := w.TryAdd(inv.Now(), inv.Units(), r.limit)
		if !ok {
			return r.refusal
		}
		inv.ReserveBucket(w, bucket, r.limit)
		if r.next.Load() == nil { // looked at after it took, see takeBucket
			return nil
		}
	}
	if !r.take(inv) { // which takes nothing twice in a window
		return r.refusal
	}
	return nil
}

// takes reports whether the rule reserves what it grants.
func (g *gate) takes() bool { return g.rule.Metric == QPS || g.rule.Metric == Concurrency }

// fits reports whether the rule would admit the call as things stand.
func (g *gate) fits(inv *core.Invocation) bool {
	now, units := inv.Now(), inv.Units()
	switch g.rule.Metric {
	case QPS:
		return g.limit > 0 && g.window.Fits(now, units, g.limit)
	case Concurrency:
		return g.hasPermits(units)
	case RT:
		return g.times.mean(now) <= int64(g.rule.MaxRT)
	}
	if g.ceiling != nil {
		return g.ceiling.admits(g.unitsInFlight)
	}
	return !(g.reading.Value() > g.rule.Threshold) || g.rule.Strategy == BBR && g.servable(now)
}

func (g *gate) unitsInFlight() int64 {
	gauge := g.inbound.NeedGauge(g.meter.Owner)
	if gauge.Settling() {
		g.inbound.Settle(gauge)
	}
	return gauge.InUse()
}

// servable is the check that alibaba/Sentinel calls BBR: one more call is fine if at
// most one is in flight, or no more than throughput times least response time, as seen
// in the second window and the last whole second. Without a call that completed there
// is no evidence against anybody.
func (g *gate) servable(now int64) bool {
	inFlight := g.inbound.InFlight()
	if inFlight <= 1 {
		return true
	}
	recent, last := g.inbound.Second(now), g.inbound.LastSecond(now)
	throughput := max(float64(recent.Complete)/g.engine.Config().Interval.Seconds(), float64(last.Complete))
	recent.Add(&last)
	least, known := recent.MinRT()
	return !known || float64(inFlight) <= throughput*max(least, time.Nanosecond).Seconds()
}

// take decides, and reserves on the invocation what it grants. A call holds at most
// one reservation in a window and in a gauge: where an earlier rule made one, it must
// be within this limit too.
func (g *gate) take(inv *core.Invocation) bool {
	switch g.rule.Metric {
	case QPS:
		return g.takeBucket(inv)
	case Concurrency:
		return g.takePermits(inv)
	}
	return g.fits(inv)
}

// takeBucket takes units of the rule's window. A call that took under rules which were
// replaced meanwhile must fit into the windows of those that came after as well. It looks
// for successors after it took: what it took before there was one has been handed to it,
// see [succession].
func (g *gate) takeBucket(inv *core.Invocation) bool {
	ok := g.takeIn(inv, g.window)
	for next := g.next.Load(); next != nil && ok; next = next.next.Load() {
		ok = g.takeIn(inv, next.window)
	}
	return ok
}

func (g *gate) takeIn(inv *core.Invocation, w *stat.Window) bool {
	if held := inv.HeldBucket(w); held != nil {
		if !w.Within(held.Token, g.limit) {
			return false
		}
		held.Undo = min(held.Undo, g.limit)
		return true
	}
	bucket, ok := w.TryAdd(inv.Now(), inv.Units(), g.limit)
	if ok {
		inv.ReserveBucket(w, bucket, g.limit)
	}
	return ok
}

func (g *gate) takePermits(inv *core.Invocation) bool {
	gauge := g.inbound.NeedGauge(g.meter.Owner)
	if inv.HoldsGauge(gauge) {
		return g.hasPermits(0)
	}
	if gauge.TryAcquire(inv.Units(), g.limit) || g.inbound.Settle(gauge) && gauge.TryAcquire(inv.Units(), g.limit) {
		inv.ReserveGauge(gauge)
		return true
	}
	return false
}

// hasPermits reports whether units more would be within the limit.
func (g *gate) hasPermits(units int64) bool {
	gauge := g.inbound.NeedGauge(g.meter.Owner)
	return gauge.Fits(units, g.limit) || g.inbound.Settle(gauge) && gauge.Fits(units, g.limit)
}
