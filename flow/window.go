package flow

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// window enforces a limit on the units that pass in an interval, in a sliding window of the node
// that the rule counts on. A prioritized call that doesn't fit may borrow from an upcoming bucket.
// An associated rule takes nothing: it reads the window of another resource.
type window struct {
	*controller
	one     *stat.Window // of the only node; nil if the node depends on the call
	limit   int64        // of a plain rule
	plain   bool         // fixed, for every call of the resource
	fixed   bool         // enforces a fixed limit in one
	callers *callers     // nil unless each caller has its own window

	// next is the window that continued this one in another shape. All successive windows of one
	// shape share it: a call may still be decided by the first of them.
	next *shared.Pointer[window]
	// before is the meter that this one continued, if that had another shape; otherwise nil.
	before *meter.Meter
}

// open creates the windows on the existing nodes, so that they count from now on. If the previous
// rule counted in windows of another shape, it returns the succession that hands the calls over.
func (e *window) open(now int64, old *controller) (s *succession) {
	switch {
	case !e.rule.goesOnFrom(old, e.resource.Name()) || old.window == nil:
	case e.meter == old.meter:
		e.next = old.window.next
	default:
		meter := old.meter // a copy, so that the old rule can be collected
		e.before = &meter
		s = &succession{old: old.window, new: e}
	}
	for n := range e.nodes() {
		seed := e.empty() // with a succession, which hands over before any call is decided here, or nothing
		if s == nil {
			seed = e.seed(n, old)
		}
		if w := n.Window(now, e.meter, seed); e.oneNode() {
			e.one = w
		}
	}
	if e.rule.Relation == Direct && e.rule.Origin == OriginOther && e.rule.Threshold > 0 {
		e.callers = new(callers)
	}
	e.fixed = e.rule.Mode == spec.Enforce && e.rule.Relation != Associated && e.rule.Threshold > 0 && e.one != nil && !e.moves()
	e.plain = e.fixed && e.node != nil
	if e.fixed && e.rule.Unit != "" && e.rule.Relation == Direct && e.rule.Origin == OriginDefault && !e.rule.Together {
		e.costs = e
	}
	return s
}

func (e *window) ask(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	now, units := inv.Now(), e.rule.amount(inv)
	w, limit := e.on(n, now), e.limitAt(now, n)
	if e.fits(w, now, units, limit) {
		return engine.Verdict{}
	}
	if e.borrows(inv) {
		if wait, ok := w.CanBorrow(now, units, limit, e.engine.Config().OccupyTimeout); ok {
			return engine.Verdict{Wait: wait, By: e.refusalOf(inv)}
		}
	}
	return e.refuseTo(inv, w, units)
}

func (e *window) take(inv *engine.Invocation, n *node.StatisticNode) engine.Verdict {
	switch {
	case e.fixed:
		return e.takeIn(inv, n, e.one, e.limit)
	case e.rule.Relation == Associated:
		v := e.ask(inv, n)
		v.Borrowed = v.Wait > 0 // the wait is that of a borrower
		return v
	case e.memory != nil:
		return e.retake(inv, n, e.takeAt)
	}
	return e.takeAt(inv, n, e.limitAt(inv.Now(), n))
}

func (e *window) takeAt(inv *engine.Invocation, n *node.StatisticNode, limit int64) engine.Verdict {
	return e.takeIn(inv, n, e.on(n, inv.Now()), limit)
}

// fits reports whether the call has room in w. A call that an associated rule only checks doesn't
// count in w.
func (e *window) fits(w *stat.Window, now, units, limit int64) bool {
	if e.rule.Relation == Associated {
		return w.HasRoom(now, units, limit)
	}
	return w.Fits(now, units, limit)
}

// takeIn takes units of the node's window w; a prioritized call may borrow them from an upcoming
// bucket. A call holds at most one reservation in a window: if an earlier rule made one, it must be
// within this limit too, or move.
//
// If the rules were replaced while a call was taking, it must also fit into the windows of their
// successors. It looks for successors after taking. Units taken before there was a successor were
// handed over to it (see [succession]), so the call already holds them there; units taken later it
// takes there as well.
func (e *window) takeIn(inv *engine.Invocation, n *node.StatisticNode, w *stat.Window, limit int64) engine.Verdict {
	before := inv.Reservations()
	v := e.takeOnce(inv, w, limit)
	if v.Block != nil || e.next.Load() == nil {
		return v
	}
	if v = e.takeNext(inv, n, limit, v); v.Block != nil && e.rule.Mode == spec.Shadow {
		inv.GiveBackFrom(before) // as in retake
	}
	return v
}

// takeNext takes in the windows of later rules.
func (e *window) takeNext(inv *engine.Invocation, n *node.StatisticNode, limit int64, v engine.Verdict) engine.Verdict {
	for next := e.next.Load(); next != nil && v.Block == nil; next = next.next.Load() {
		w := next.on(n, inv.Now())
		inv.Follow()
		v = longer(inv, e.takeOnce(inv, w, limit), v)
	}
	return v
}

func (e *window) takeOnce(inv *engine.Invocation, w *stat.Window, limit int64) engine.Verdict {
	now, units := inv.Now(), e.rule.amount(inv)
	if held := inv.FindBucket(w); held != nil {
		return e.share(inv, w, held, limit)
	}
	if receipt, ok := w.TryAdd(inv.Lane(), now, units, limit); ok {
		e.reserve(inv, w, receipt, units, limit)
		return engine.Verdict{}
	}
	if !e.borrows(inv) {
		return e.refuseTo(inv, w, units)
	}
	wait, receipt, ok := w.TryBorrow(now, units, limit, e.engine.Config().OccupyTimeout)
	if !ok {
		return e.refuseTo(inv, w, units)
	}
	e.reserve(inv, w, receipt, units, limit)
	return engine.Verdict{Wait: wait, By: e.refusalOf(inv), Borrowed: true}
}

func (e *window) share(inv *engine.Invocation, w *stat.Window, held *engine.Reservation, limit int64) engine.Verdict {
	if w.Within(held.Receipt(), limit) {
		held.LowerLimit(limit)
		return engine.Verdict{}
	}
	if !e.borrows(inv) {
		return e.refuseTo(inv, w, held.Units)
	}
	wait, ok := inv.Rebook(w, limit, e.engine.Config().OccupyTimeout)
	if !ok {
		return e.refuseTo(inv, w, held.Units)
	}
	return engine.Verdict{Wait: wait, By: e.refusalOf(inv), Borrowed: true}
}

// borrows reports whether a call that doesn't fit may wait for an upcoming bucket.
func (e *window) borrows(inv *engine.Invocation) bool {
	return inv.Prioritized() && e.rule.Behavior == Reject
}

func (e *window) retryAfter(now, n int64) (wait time.Duration, known bool) {
	if e.one == nil {
		return 0, false
	}
	return e.one.RetryAfter(now, n, e.lookLimit(now, &e.resource.StatisticNode))
}

// idle reports whether the rule's one window counts nothing, even if it has outlived the node it was
// created on; true if the window depends on the call.
func (e *window) idle(now int64) bool {
	return e.one == nil || e.one.Sum(now) == 0 && e.one.Waiting(now) == 0
}

func (e *window) explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	now, units := inv.Now(), e.rule.amount(inv)
	w, found := e.lookOn(n, now)
	limit := e.lookLimit(now, n)
	m := engine.MeasureUnits(cmp.Or(e.rule.Unit, "units")+" in "+e.rule.Interval.String(), w.Sum(now), limit)
	*m.Remaining = w.Room(now, limit)
	ok := e.fits(w, now, units, limit)
	if !ok && e.borrows(inv) {
		if wait, can := w.CanBorrow(now, units, limit, e.engine.Config().OccupyTimeout); can {
			inv.JudgeWait(j, wait, true, 0)
			ok = true
		}
	}
	if !ok {
		wait, known := w.RetryAfter(now, units, limit)
		inv.JudgeRefused(j, wait, known)
		borrowed := e.rule.Relation == Associated && w.Waiting(now) > 0
		j.About = known && (!found || borrowed || e.borrows(inv) || e.moves() && now/int64(time.Second) != (now+int64(wait))/int64(time.Second))
	}
	j.Measures = []core.Measure{m}
}

// on returns the rule's window on the node it counts on. If made now, it continues the previous
// rule's window, which may hold units that no node has counted.
//
// The window of an associated rule is looked up each time: it is at another resource, where it may
// be dropped just as the rule comes into force.
func (e *window) on(n *node.StatisticNode, now int64) *stat.Window {
	if e.one != nil && e.rule.Relation != Associated {
		return e.one
	}
	if e.before == nil && e.rule.Unit == "" {
		return n.Window(now, e.meter, nil)
	}
	if w := n.FindWindow(e.meter); w != nil {
		return w
	}
	var seed *stat.Window
	if e.before != nil {
		seed = n.FindWindow(*e.before)
	}
	if seed == nil && e.rule.Unit != "" {
		seed = e.empty() // the node counts calls
	}
	return n.Window(now, e.meter, seed)
}

// lookOn is like on, but has no side effects. If there is no window, it uses the node's counts, with
// less precise times.
func (e *window) lookOn(n *node.StatisticNode, now int64) (w *stat.Window, found bool) {
	if e.one != nil && e.rule.Relation != Associated {
		return e.one, true
	}
	if e.rule.Unit != "" || !e.rule.Info().Named() && e.resource.Name() == node.OverflowName {
		if w = n.FindWindow(e.meter); w == nil { // the node counted calls, and those of all names
			w = e.empty()
		}
		return w, true
	}
	return n.LookWindow(now, e.meter)
}
