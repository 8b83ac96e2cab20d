package hotspot

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/quotalog"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// controller is one rule in effect on one resource.
type controller struct {
	rule    Rule
	engine  *engine.Engine
	home    *engine.Resource // of a rule that counts all names together, otherwise nil
	member  *sharing.Member  // shares the limits; nil if they are local
	refusal *core.BlockError

	strict   bool               // each value has a window
	refills  bool               // each value has a bucket that is refilled, as in Sentinel
	calendar *calendar.Calendar // has the periods of a rule with quotas, otherwise nil

	// Where the values come from: an attachment, or else keys, or else an argument.
	param string
	key   *engine.Key // with several parts, or one that is neither an attachment nor an argument
	index int

	quota      quota
	exceptions map[argument.Value]*quota // of named values; not nil if there are any exceptions
	starred    []starred                 // the other exceptions
	plans      map[argument.Value]*plan  // nil if there are none
	asks       bool                      // code sets limits, in place of plans
	moves      bool                      // there are plans, or code sets limits: a value's limit may change at any call
	varies     bool                      // there are exceptions, or limits move
	mixed      bool                      // there are starred exceptions, or limits move
	restQuota  quota                     // of the rest, whose tokens fill as slowly as those of any value in it
	values     *values
	book       *quotalog.Book // keeps the use of quotas over restarts; nil if that isn't configured

	record *engine.Record

	notifier *family.Notifier // nil unless the rule reports the use of its limits
}

// newController returns the controller of a rule, which continues old if there is one. publish does
// the part that must wait until the rules are published.
func newController(t *table, r Rule, record *engine.Record, resource *engine.Resource, old *controller) (c *controller, publish func(now int64)) {
	c = &controller{rule: r, record: record, engine: t.Engine, quota: r.quota(r.Threshold)}
	if r.Together {
		c.home = resource
	}
	c.strict, c.refills = r.counts()
	c.calendar = r.periods().Calendar()
	c.restQuota = c.quota
	switch parts := r.parts(); {
	case len(parts) > 1 || parts[0].Of >= engine.PartOrigin:
		c.key = &engine.Key{Parts: parts, Fill: r.Missing != MissingNone, Known: c.known}
	default:
		c.param, c.index = parts[0].Param, parts[0].Arg
	}
	if r.leases() {
		c.member = t.Member
	}
	goesOn := old != nil && old.rule.source() == r.source() && old.rule.Unit == r.Unit
	named := r.Exceptions
	if r.Missing == MissingRefuse {
		named = append(slices.Clip(named), Exception{Value: empty})
	}
	if len(named) > 0 {
		c.exceptions = make(map[argument.Value]*quota, len(named))
		for _, x := range named {
			q := r.quota(x.Threshold)
			v, stars := x.key()
			if stars != 0 {
				c.star(x, &q)
				continue
			}
			q.named = true
			q.private = !goesOn || old.exceptions[v] != nil && old.exceptions[v].private
			c.exceptions[v.Clone()] = &q
		}
	}
	c.setPlans()
	c.asks = r.LimitsFromCode && r.Mode != spec.Off
	c.moves = c.asks || c.plans != nil
	c.mixed = c.mixed || c.moves
	c.varies = c.exceptions != nil || c.mixed
	var before *core.BlockError
	if old != nil {
		before = old.refusal
	}
	c.refusal = engine.NewCounted(family.Refused(core.KindHotspot, resource.Name(), r.Info()), nil, record, before)
	c.notifier = family.NewNotifier(c.engine, record, core.KindHotspot, r.ID, c.refusal.Resource, r.Notify, r.Interval)
	c.book = c.openBook()
	if goesOn {
		c.values = old.values // units used and in flight still count, under the new limits
		return c, func(now int64) {
			c.values.resize(r.MaxValues)
			c.values.name(c.exceptions)
			c.values.follow(c, old, now)
		}
	}
	c.values = newValues(r.MaxValues, c)
	c.values.questions.background = c.engine.Background
	return c, func(int64) {
		if old != nil { // which looked at another argument
			record.Found.Store(false)
			record.Missed.Store(0)
		}
	}
}

// quotaOf returns the limit of a value with a plan, which may be nil.
func (c *controller) quotaOf(v argument.Value, p *plan) *quota {
	if c.exceptions != nil {
		if q, ok := c.exceptions[v]; ok {
			return q
		}
	}
	if c.mixed {
		return c.mixedQuota(v, p)
	}
	return &c.quota
}

// empty is the empty text.
var empty = argument.Of("")

// nothing holds the values of a call that has none, where such calls have a limit.
var nothing = []engine.Occurrence{{Value: empty, Times: 1}}

// occurrences returns the values of a call that the rule limits; the caller must not change them.
func (c *controller) occurrences(inv *engine.Invocation) (all []engine.Occurrence) {
	switch {
	case c.key != nil:
		all = inv.KeyValues(c.key)
		if c.rule.Missing == MissingRefuse && slices.ContainsFunc(all, isEmpty) {
			return nothing
		}
	case c.param == "":
		all = inv.ArgValues(c.index)
	default:
		all = inv.ParamValues(c.param)
	}
	switch {
	case c.rule.Missing == MissingUnlimited:
		all = slices.DeleteFunc(all, isEmpty)
	case len(all) == 0 && c.rule.Missing != MissingNone:
		all = nothing
	}
	return all
}

// isEmpty reports whether a call doesn't have the value, or a part of it.
func isEmpty(o engine.Occurrence) bool { return o.Value.IsEmpty() }

// soleKey is sole for the keys of the rule.
func (c *controller) soleKey(inv *engine.Invocation) (v *argument.Value, sole bool) {
	all := c.occurrences(inv)
	if len(all) > 1 || len(all) == 1 && all[0].Times > 1 {
		return nil, false
	}
	c.watch(all, inv)
	if len(all) == 1 {
		v = &all[0].Value
	}
	return v, true
}

// plain reports whether the rule is enforced for every call, and has a bucket for each value.
func (c *controller) plain() bool {
	return c.rule.Mode == spec.Enforce && c.rule.fills() && c.calendar == nil && c.rule.Unit == "" && c.home == nil && len(c.rule.Notify) == 0 && !c.rule.locksOut()
}

// sole returns the value of a call that has at most one, or nil if it has none.
func (c *controller) sole(inv *engine.Invocation) (v *argument.Value, sole bool) {
	if c.param == "" {
		if c.key != nil {
			return c.soleKey(inv)
		}
		return nil, false
	}
	v, sole = inv.ParamValue(c.param)
	if sole && c.plans != nil {
		c.watchPlan(inv)
	}
	if sole && (v == nil || c.rule.Missing != MissingNone && *v == empty) {
		c.missed(inv.Now())
		if v = nil; c.rule.Missing >= MissingShared {
			v = &empty
		}
	}
	return v, sole
}

// forgettableLocked reports whether a value that the rule doesn't name would get no more if it were
// new.
func (c *controller) forgettableLocked(x *cell, now int64) bool {
	switch {
	case x.held > 0, x.lease != nil && x.lease.keepsLocked(now), x.extras != nil && x.extras.keepsLocked(c, now):
		return false
	case c.rule.leases():
		return true
	case c.rule.Metric == Concurrency:
		return true
	case c.calendar != nil:
		return x.period == nil || x.period.Idle(now)
	case c.rule.Behavior == Throttle:
		return x.queue == nil || x.queue.Rested(now, c.quotaOf(x.value, x.plan).cost(1)) && x.shard.restFollows(x.last())
	case c.rule.Behavior == TokenBucket:
		return x.tokens == nil || x.tokens.Full(now)
	}
	return c.usedLocked(x, now, c.quotaOf(x.value, x.plan)) == 0
}

// idle reports whether the rule's values can be dropped.
func (c *controller) idle(now int64) bool {
	idle := true
	c.values.each(now, func(x *cell) {
		idle = idle && c.forgettableLocked(x, now) && (c.rule.Behavior != Throttle || c.paidLocked(x, now))
	})
	return idle
}

// paidLocked reports whether a new queue would admit no call earlier than the value's, not even the
// largest one. With a unit that is the largest one so far: one of 2^40 bytes can take decades. An
// evicted value leaves its latest turn to the rest, but nothing is left of a table that is dropped.
func (c *controller) paidLocked(x *cell, now int64) bool {
	most := max(stat.MaxUnits, x.shard.largest)
	q := c.quotaOf(x.value, x.plan)
	return q.wait(x.last(), now-q.burst, most) == 0
}
