package breaker

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// controller is one revision of a rule at work on one resource. The machine is that of
// all its revisions.
type controller struct {
	rule      Rule
	engine    *core.Engine
	resource  string
	machine   *machine
	refusal   *core.BlockError
	rehearsed *stat.Tally // refusals of a shadow rule
}

func newController(e *core.Engine, listeners *Listeners, r Rule, resource string, old *controller) (c *controller, t *terms) {
	t = &terms{Rule: r, resource: resource}
	if listeners != nil {
		t.tell = func(change Change) { listeners.tell(e, change) }
	}
	c = &controller{rule: r, engine: e, resource: resource, rehearsed: new(stat.Tally)}
	c.refusal = core.NewBlockError(core.KindBreaker, resource, r.ID, c)
	if old == nil {
		c.machine = newMachine(t)
		return c, t
	}
	c.machine, c.rehearsed = old.machine, old.rehearsed
	c.refusal.Succeed(old.refusal)
	return c, t
}

// RetryAfter is when the breaker lets somebody in, 0 if it can't tell.
func (c *controller) RetryAfter() time.Duration { return c.machine.retryAfter(c.engine.Now()) }

// GiveBack takes back the probe of a call that is refused after all.
func (m *machine) GiveBack(r *core.Reservation) { m.giveBack(uint64(r.Token)) }

// ask reports whether the breaker would let the call in.
func (c *controller) ask(inv *core.Invocation) (ok bool) {
	ok, number := c.machine.asks(inv.Now())
	if ok && number != 0 {
		c.note(inv, int64(number))
	}
	return ok
}

// take lets the call in or not. What it got it carries: a mark that counts when it
// completes, and the reservation of a probe. What it has from before stands if it is
// still good: a turn from when it was asked, or what it got before a wait that nobody
// knew of.
func (c *controller) take(inv *core.Invocation) (ok bool) {
	if mark := c.marked(inv); mark != nil && c.machine.holds(uint64(mark.Token)) {
		return true
	}
	got, change := c.machine.admit(inv.Now())
	switch {
	case got.ok:
		c.note(inv, int64(got.number))
		if got.probe {
			inv.Reserve(core.Reservation{Holder: c.machine, Token: int64(got.number)})
		}
	case c.rule.Mode == core.Shadow:
		c.rehearsed.Add(inv.Lane(), 1)
	}
	change.notify() // last: a listener may do anything
	return got.ok
}

// note leaves the mark, in place of one that is no longer good.
func (c *controller) note(inv *core.Invocation, number int64) {
	if mark := c.marked(inv); mark != nil {
		mark.Token = number
		return
	}
	inv.Mark(c.machine, number)
}

func (c *controller) marked(inv *core.Invocation) *core.Mark {
	marks := inv.Marks()
	for i := range marks {
		if marks[i].Owner == any(c.machine) {
			return &marks[i]
		}
	}
	return nil
}

// acts is what [core.FamilyTable] asks of every controller.
func (c *controller) acts() (Rule, *core.BlockError, *stat.Tally) {
	return c.rule, c.refusal, c.rehearsed
}
