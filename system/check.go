package system

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// checker holds the system rules as they apply to the calls of one resource. Safe for concurrent
// use.
type checker struct {
	*order
	refusals *refusals
	made     shared.Pointer[[]shared.Pointer[core.BlockError]] // refusals, by index in the order; nil before the first
}

// order holds the rules in the order in which they are asked and in that in which they take. All
// resources share it.
type order struct {
	rules   []*gate // as declared
	holding []int   // indexes of the enforced rules, in the order in which they are asked
	takers  []int   // the same in the order in which they take
	shadows []*gate
}

func newOrder(rules []*gate) *order {
	o := &order{rules: rules}
	for i, g := range rules {
		if g.rule.Mode == spec.Shadow {
			o.shadows = append(o.shadows, g)
		} else {
			o.holding = append(o.holding, i)
		}
	}
	o.takers = slices.Clone(o.holding)
	// Rules that only read come first, then the scarcest, since it refuses the most calls, and
	// refused calls then hold nothing of the others.
	slices.SortStableFunc(o.takers, func(a, b int) int {
		return cmp.Compare(rules[a].rule.abundance(), rules[b].rule.abundance())
	})
	return o
}

// refuse returns the refusal of a rule.
func (rs *checker) refuse(place int) engine.Verdict {
	made := rs.made.Load()
	if made == nil { // allocating all refusals for all resources would take much memory
		fresh := make([]shared.Pointer[core.BlockError], len(rs.rules))
		if made = &fresh; !rs.made.CompareAndSwap(nil, made) {
			made = rs.made.Load()
		}
	}
	b := (*made)[place].Load()
	if b == nil {
		b = rs.refusals.by(rs.rules[place])
		(*made)[place].Store(b)
	}
	return engine.Verdict{Block: b}
}

// abundance estimates how much a rule grants: units per second, or units in flight.
func (r Rule) abundance() float64 {
	switch r.Metric {
	case QPS:
		return r.Threshold / r.Interval.Seconds()
	case Concurrency:
		return r.Threshold
	}
	return -1 // it grants none
}

// Ask returns the first refusal. It takes nothing. Only inbound calls are refused.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	if !inv.Inbound() {
		return engine.Verdict{}
	}
	for _, i := range rs.holding {
		if !rs.rules[i].fits(inv) {
			return rs.refuse(i)
		}
	}
	return engine.Verdict{}
}

// Take lets every rule decide; rules with a limit take.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if !inv.Inbound() {
		return engine.Verdict{}
	}
	for _, i := range rs.takers {
		if !rs.rules[i].take(inv) {
			return rs.refuse(i)
		}
	}
	return engine.Verdict{}
}

// Modes reports whether any rules are enforced and whether any are in shadow mode.
func (rs *checker) Modes() (hold, shadow bool) { return len(rs.holding) > 0, len(rs.shadows) > 0 }

// Shadow lets every shadow rule decide.
func (rs *checker) Shadow(inv *engine.Invocation) {
	if !inv.Inbound() {
		return
	}
	for _, g := range rs.shadows {
		if !g.take(inv) {
			g.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
}

// Direct reports whether exactly one rule is enforced.
func (rs *checker) Direct() bool { return len(rs.holding) == 1 }

// fits reports whether the rule would admit the call as of now.
func (g *gate) fits(inv *engine.Invocation) bool {
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
		return g.ceiling.admits(func() int64 { return g.unitsInFlight(inv) })
	}
	return !(g.reading.Value() > g.rule.Threshold) || g.rule.Strategy == BBR && g.servable(now)
}

// unitsInFlight returns the inbound units but the call's own, which another rule may have taken.
func (g *gate) unitsInFlight(inv *engine.Invocation) int64 {
	semaphore := g.inbound.NeedSemaphore(g.meter.Owner)
	if semaphore.Settling() {
		g.inbound.Settle(semaphore)
	}
	own := int64(0)
	if inv.HoldsSemaphore(semaphore) {
		own = inv.Units()
	}
	return semaphore.InUse() - own
}

// servable is the check that alibaba/Sentinel calls BBR: one more call is fine if at most one is in
// flight, or no more than throughput times lowest response time, as seen in the second window and
// the last whole second. Without a completed call there is no evidence to refuse on.
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

// take decides, and reserves the granted units on the invocation. A call holds at most one
// reservation in a window and in a semaphore: if an earlier rule made one, it must be within this
// limit too.
func (g *gate) take(inv *engine.Invocation) bool {
	switch g.rule.Metric {
	case QPS:
		return g.takeBucket(inv)
	case Concurrency:
		return g.takePermits(inv)
	}
	return g.fits(inv)
}

// takeBucket takes units of the rule's window. If the rules were replaced while the call was taking,
// it must also fit into the windows of their successors. It looks for successors after taking: units
// taken before there was a successor were handed over to it, and are held there; see openWindow.
func (g *gate) takeBucket(inv *engine.Invocation) bool {
	ok := g.takeIn(inv, g.window)
	for next := g.next.Load(); next != nil && ok; next = next.next.Load() {
		inv.Follow()
		ok = g.takeIn(inv, next.window)
	}
	return ok
}

func (g *gate) takeIn(inv *engine.Invocation, w *stat.Window) bool {
	if held := inv.FindBucket(w); held != nil {
		if !w.Within(held.Receipt(), g.limit) {
			return false
		}
		held.LowerLimit(g.limit)
		return true
	}
	receipt, ok := w.TryAdd(inv.Lane(), inv.Now(), inv.Units(), g.limit)
	if ok {
		inv.ReserveBucket(w, receipt, inv.Units(), g.limit)
	}
	return ok
}

func (g *gate) takePermits(inv *engine.Invocation) bool {
	semaphore := g.inbound.NeedSemaphore(g.meter.Owner)
	if inv.HoldsSemaphore(semaphore) {
		return g.hasPermits(0)
	}
	acquire := func() bool { return semaphore.TryAcquire(inv.Lane(), inv.Units(), g.limit) }
	if acquire() || g.inbound.Settle(semaphore) && acquire() {
		inv.ReserveSemaphore(semaphore)
		return true
	}
	return false
}

// hasPermits reports whether the given number of further units is within the limit.
func (g *gate) hasPermits(units int64) bool {
	semaphore := g.inbound.NeedSemaphore(g.meter.Owner)
	return semaphore.Fits(units, g.limit) || g.inbound.Settle(semaphore) && semaphore.Fits(units, g.limit)
}
