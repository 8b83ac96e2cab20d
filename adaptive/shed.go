package adaptive

import (
	"math"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
)

// shedding is a [checker] some of whose rules have a shed order.
type shedding struct{ checker }

// Ask is like that of a checker.
func (rs *shedding) Ask(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if c.judge == nil {
			if !c.ask(inv) {
				return engine.Verdict{Block: c.refusal}
			}
		} else if b := c.refusals.Of(shed.Ask(c.judge, inv, c.unitsOf(inv, c.owner)), inv.Level()); b != nil {
			return engine.Verdict{Block: b}
		}
	}
	return engine.Verdict{}
}

// Take is like that of a checker.
func (rs *shedding) Take(inv *engine.Invocation) engine.Verdict {
	if inv.Waits() {
		return engine.Verdict{}
	}
	return rs.take(inv)
}

// Recheck is like that of a checker.
func (rs *shedding) Recheck(inv *engine.Invocation) engine.Verdict {
	v := rs.take(inv)
	if v.Block == nil {
		rs.shadow(inv)
	}
	return v
}

func (rs *shedding) take(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.Holding {
		if c.judge == nil {
			if !c.take(inv) {
				return engine.Verdict{Block: c.refusal}
			}
		} else if v := c.takeByLevel(inv); v.Block != nil {
			return v
		}
	}
	return engine.Verdict{}
}

// unitsInFlight are the units of a call in a semaphore. A call of more units than the limit runs
// alone.
type unitsInFlight struct {
	node      *node.StatisticNode
	semaphore *meter.Semaphore
	lane      uint32
	n, most   int64
}

func (c *controller) unitsOf(inv *engine.Invocation, owner any) unitsInFlight {
	n := &c.resource.StatisticNode
	return unitsInFlight{n, n.NeedSemaphore(owner), inv.Lane(), inv.Units(), int64(c.rule.Ceiling)}
}

// Fits implements [shed.Units].
func (u unitsInFlight) Fits(limit int64) bool {
	fits := func() bool {
		return u.semaphore.Fits(u.n, limit) || u.n > limit && u.n <= u.most && u.semaphore.Fits(u.n, u.n)
	}
	return fits() || u.node.Settle(u.semaphore) && fits()
}

// Take implements [shed.Units].
func (u unitsInFlight) Take(limit int64) bool {
	take := func() bool {
		return u.semaphore.TryAcquire(u.lane, u.n, limit) || u.n > limit && u.n <= u.most && u.semaphore.TryAcquire(u.lane, u.n, u.n)
	}
	return take() || u.node.Settle(u.semaphore) && take()
}

// Release implements [shed.Units].
func (u unitsInFlight) Release() { u.semaphore.Release(u.lane, u.n) }

// takeByLevel is like take, for a rule with a shed order.
func (c *controller) takeByLevel(inv *engine.Invocation) engine.Verdict {
	if before := c.noted(inv); before != nil {
		before.Token = token(before.Token&inFlightMask, inv)
		return engine.Verdict{}
	}
	units := c.unitsOf(inv, c.owner)
	v, _ := shed.Take(c.judge, inv, units)
	if v == shed.Admitted {
		inv.ReserveSemaphore(units.semaphore)
		inv.OnComplete(c.limit, token(units.semaphore.InUse(), inv))
	}
	return engine.Verdict{Block: c.refusals.Of(v, inv.Level())}
}

// admitShadow takes units in the semaphore of the calls that a shadow rule would admit, and
// reports whether they fit.
func (c *controller) admitShadow(inv *engine.Invocation) bool {
	if c.judge == nil {
		n := &c.resource.StatisticNode
		g := n.NeedSemaphore(c.shadowOwner)
		if !c.limit.take(n, g, inv.Lane(), inv.Units(), int64(c.rule.Ceiling)) {
			return false
		}
		inv.ReserveSemaphore(g)
		return true
	}
	units := c.unitsOf(inv, c.shadowOwner)
	v, _ := shed.Take(c.judge, inv, units)
	if v == shed.Admitted {
		inv.ReserveSemaphore(units.semaphore)
	}
	return v == shed.Admitted
}

// partOfStep is the part of the learner's step up that a level may leave free, as a divisor.
const partOfStep = 4

// judgeOf returns the judge of a rule at a limit, nil without a shed order.
func (l *limit) judgeOf(r Rule) *shed.Judge {
	if r.Shed == spec.ShedNone {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate == nil {
		l.gate = shed.NewGate(l.learner.level)
		l.setGateLocked()
	}
	return shed.NewJudge(l.gate, r.Shed, r.Floors)
}

// setGateLocked puts the learner's limit into force for rules with a shed order. While the learner
// looks above the learned limit, the reserves are at most a quarter of the way there: otherwise few
// calls would arrive far above it, and the limit would rise slowly. With half of it, 5 of 98 steps of
// 16 workers ended a tenth off.
func (l *limit) setGateLocked() {
	if l.gate == nil {
		return
	}
	most := int64(math.MaxInt64)
	if step := l.learner.level - l.learner.limit(); step > 0 {
		most = step / partOfStep
	}
	l.gate.SetLimit(l.learner.level, most)
}
