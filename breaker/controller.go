package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// controller is one revision of a rule in effect on one resource. All revisions share the machine.
type controller struct {
	rule     Rule
	engine   *engine.Engine
	resource string
	machine  *machine
	refusal  *core.BlockError
	record   *engine.Record
	journal  *journal // shared by all revisions, as is machine
}

func newController(e *engine.Engine, ls *listeners, r Rule, record *engine.Record, resource string, old *controller) (c *controller, t *terms) {
	c = &controller{rule: r, record: record, engine: e, resource: resource}
	t = &terms{Rule: r, resource: resource, tell: func(change Change) {
		c.log(change)
		ls.tell(e, change)
	}}
	var before *core.BlockError
	if old != nil {
		before, c.machine, c.journal = old.refusal, old.machine, old.journal
	} else {
		c.machine, c.journal = newMachine(t), new(journal)
	}
	c.refusal = engine.NewCounted(family.Refused(core.KindBreaker, resource, r.Info()), c, record, before)
	return c, t
}

// log logs a change. Listeners are called even if a log handler panics.
func (c *controller) log(change Change) {
	c.engine.Shield(func() {
		c.journal.note(change)
		c.engine.Log(c.journal, change.At.UnixNano())
	})
}

// RetryAfter returns the time until the breaker admits a call; see [machine.retryAfter].
func (c *controller) RetryAfter() (wait time.Duration, known bool) {
	return c.machine.retryAfter(c.engine.Now())
}

// Limit is unknown: a breaker has none.
func (c *controller) Limit() (float64, bool) { return 0, false }

// GiveBack releases the probe of a call that is refused by another rule.
func (m *machine) GiveBack(r *engine.Reservation, _ int64) { m.giveBack(uint64(r.Token)) }

// ask reports whether the breaker would admit the call.
func (c *controller) ask(inv *engine.Invocation) (ok bool) {
	ok, number := c.machine.asks(inv.Now())
	if ok && number != 0 {
		c.note(inv, int64(number))
	}
	return ok
}

// take admits the call or refuses it. An admitted call carries a number that counts when it
// completes, and the reservation of a probe if it is one. An earlier admission of the call stands
// if still valid: a turn from Ask, or an admission before a wait that was not announced.
func (c *controller) take(inv *engine.Invocation) (ok bool) {
	if state, number := c.machine.state(); state == Closed && len(inv.Completions()) == 0 {
		inv.OnComplete(c.machine, int64(number)) // a shortcut for nearly all calls
		return true
	}
	if c.stands(inv) {
		return true
	}
	got, change := c.machine.admit(inv.Now())
	switch {
	case got.ok:
		c.note(inv, int64(got.number))
		if got.probe {
			inv.Reserve(engine.Reservation{Holder: c.machine, Token: int64(got.number)})
		}
	case c.rule.Mode == spec.Shadow:
		c.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
	change.notify() // last: a listener may do anything
	return got.ok
}

// stands reports whether an earlier admission of the call is still valid.
func (c *controller) stands(inv *engine.Invocation) bool {
	before := c.noted(inv)
	return before != nil && c.machine.holds(uint64(before.Token))
}

// note sets the call's number, replacing one that is no longer valid.
func (c *controller) note(inv *engine.Invocation, number int64) {
	if before := c.noted(inv); before != nil {
		before.Token = number
		return
	}
	inv.OnComplete(c.machine, number)
}

func (c *controller) noted(inv *engine.Invocation) *engine.Completion { return inv.Left(c.machine) }
