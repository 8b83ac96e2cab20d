package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
)

// controller is one revision of a rule in effect on one resource. All revisions share the state and
// the pauses.
type controller struct {
	rule     Rule
	engine   *engine.Engine
	resource string
	paused   string // name that an answer of the resource pauses; "" for the overflow resource, whose calls have many
	pauses   *pauses
	state    *state
	record   *engine.Record

	// The refusals, one for each reason.
	pause, spent, throttled *core.BlockError
}

// state has the counts of a resource, which all revisions share. It is notified when calls end.
type state struct {
	budget   budget
	throttle *throttle
	current  shared.Pointer[controller] // latest revision
}

func newController(t *table, r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
	c := &controller{rule: r, engine: t.Engine, resource: at.Resource.Name(), pauses: t.pauses[record], record: record}
	if c.resource != node.OverflowName {
		c.paused = r.Scope.of(c.resource)
	}
	var before *core.BlockError
	if old != nil {
		before, c.state = old.pause, old.state
	} else {
		c.state = &state{throttle: newThrottle(r.Throttle.interval(), t.nextSeed())}
		c.state.current.Store(c)
	}
	b := core.BlockError{Kind: core.KindUpstream, Resource: c.resource, Rule: r.ID}
	c.pause = engine.NewCounted(b, c, record, before)
	c.spent = engine.NewCounted(b, noRetries{}, record, c.pause)
	c.throttled = engine.NewCounted(b, nextSecond{c}, record, c.pause)
	return c
}

// interval returns the interval, or the default for a rule without a throttle.
func (t Throttle) interval() time.Duration {
	if t.given() {
		return t.Interval
	}
	return DefaultInterval
}

// adopt makes the state follow this revision.
func (c *controller) adopt(now int64) {
	c.state.throttle.setInterval(c.rule.Throttle.interval(), now)
	c.state.current.Store(c)
}

// idle reports whether the state can be dropped: no call is in flight, and the throttle refuses none.
func (c *controller) idle(now int64) bool {
	calls, _ := c.state.budget.inFlight()
	sum, _ := c.state.throttle.look(now)
	return calls == 0 && sum.probability(max(1, c.rule.Throttle.K)) == 0
}

// RetryAfter returns the time until the pause ends; see the package's documentation.
func (c *controller) RetryAfter() (time.Duration, bool) {
	return c.pauses.retryAfter(c.paused, c.engine.Now()), true
}

// Limit is unknown: the rule has none.
func (c *controller) Limit() (float64, bool) { return 0, false }

// beyond is the rule behind the refusal of a name beyond the cap on resources.
type beyond struct {
	*controller
	paused string
}

// RetryAfter is like that of the controller.
func (b beyond) RetryAfter() (time.Duration, bool) {
	return b.pauses.retryAfter(b.paused, b.engine.Now()), true
}

// noRetries is the rule behind the refusal of a retry.
type noRetries struct{}

// RetryAfter is unknown: it depends on calls that exit, and another retry helps nobody.
func (noRetries) RetryAfter() (time.Duration, bool) { return 0, false }

// Limit is unknown: it changes with the calls in flight.
func (noRetries) Limit() (float64, bool) { return 0, false }

// SpendsRetries makes the refusal match [core.ErrRetryBudget].
func (noRetries) SpendsRetries() bool { return true }

// nextSecond is the rule behind a refusal by the throttle.
type nextSecond struct{ *controller }

// RetryAfter returns the time until the next second, whose first call passes.
func (n nextSecond) RetryAfter() (time.Duration, bool) {
	now := n.engine.Now()
	sum, first := n.state.throttle.look(now)
	if first || sum.probability(n.rule.Throttle.K) == 0 {
		return 0, true
	}
	return time.Duration(floor(now) + second - now), true
}

// pausedBy returns what an answer to the call pauses.
func (c *controller) pausedBy(inv *engine.Invocation) string {
	if c.paused != "" {
		return c.paused
	}
	return c.rule.Scope.of(inv.Name())
}

// pauseOf returns the refusal of a call during a pause.
func (c *controller) pauseOf(inv *engine.Invocation) *core.BlockError {
	if c.paused != "" {
		return c.pause
	}
	return engine.Needing(c.pause, beyond{c, c.pausedBy(inv)})
}

// Hear pauses the resource, if the rule obeys and the server of the call has asked for that.
func (s *state) Hear(inv *engine.Invocation, now int64, retryAfter time.Duration) {
	c := s.current.Load()
	if !c.rule.Obey || c.rule.Mode == spec.Off {
		return
	}
	if span, ok := spanOf(now, retryAfter, c.rule.MaxPause); ok {
		c.pauses.add(c.pausedBy(inv), now, span)
	}
}

// Complete counts the end of a call. A neutral call says nothing about the server.
func (s *state) Complete(inv *engine.Invocation, _ int64) {
	c := s.current.Load()
	if c.rule.Throttle.given() && c.rule.Mode != spec.Off && !inv.Neutral() && !canceled(inv.Context()) {
		s.throttle.complete(inv.Now(), !inv.Overloaded())
	}
}

// canceled reports whether the caller has canceled the call, whatever its failure is taken for.
func canceled(ctx context.Context) bool { return ctx != nil && errors.Is(ctx.Err(), context.Canceled) }

// GiveBack ends a call on the budget.
func (b *budget) GiveBack(r *engine.Reservation, _ int64) { b.release(r.Token) }

// GiveBack lets another call be the first in a second, as this one is refused by another rule.
func (t *throttle) GiveBack(r *engine.Reservation, _ int64) { t.giveBack(r.Token) }
