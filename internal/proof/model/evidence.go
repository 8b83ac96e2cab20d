package model

import (
	"math/big"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
)

// The following methods tell package replay on which grounds a call was decided.

// Units are the units counted in the windows of a node.
type Units struct {
	Now    int64 // at present
	Most   int64 // maximum while the current bucket counts, including units borrowed in that time
	Coming int64 // in buckets that have not begun
}

// Units returns the units in the windows of a resource's node, of a call's or caller's node there
// (kind "cluster", "call" or "origin"), or of all inbound calls ("inbound"); without those of a
// call.
func (m *Model) Units(kind, resource, name string, without *Call) (u Units) {
	for _, w := range m.windows {
		if w.on != (place{kind, resource, name}) || w.owner != everybody {
			continue
		}
		w.see(m.now)
		others := *w
		others.charges = slices.DeleteFunc(slices.Clone(w.charges), func(c *charge) bool { return without != nil && c.call == without })
		u.Now, u.Most, u.Coming = others.sum(w.head()), 0, others.waiting()
		for b := w.head(); b < w.head()+w.span(); b++ {
			u.Most = max(u.Most, others.sum(b))
		}
	}
	return u
}

// Overtakes reports whether a call may jump ahead of others in a queue, or joins one in which a
// call has done so.
func (m *Model) Overtakes(c *Call) bool {
	overtakes := func(q *queue) bool {
		return q.overtaken || c.Prioritized && slices.ContainsFunc(q.waiting, func(x *turn) bool { return x.call != c })
	}
	for _, l := range m.of(c.Resource) {
		if l.queues() && m.applies(l, c) && overtakes(l.queue) {
			return true
		}
	}
	for _, v := range m.valuedOf(c.Resource, spec.Enforce) {
		for _, o := range v.of(c) {
			if v.rule.Behavior == hotspot.Throttle && overtakes(v.value(o.Value).queue) {
				return true
			}
		}
	}
	return false
}

// WaitOf returns how long a call has to wait for its turn under a flow rule, or 0 if it has no turn.
func (m *Model) WaitOf(c *Call, rule string) time.Duration {
	for _, l := range m.of(c.Resource) {
		for _, x := range c.turns {
			if l.rule.ID == rule && x.queue == l.queue {
				return time.Duration(whole(x.at) - c.began)
			}
		}
	}
	return 0
}

// Borrowed reports whether the longest wait of a call is for an upcoming bucket.
func (c *Call) Borrowed() bool { return c.borrowed }

// Borrows reports whether some rule has lent the call units of an upcoming bucket.
func (c *Call) Borrows() bool { return c.firm != 0 }

// AskValues returns the first hotspot rule that would refuse a call, or else the wait that the
// rules would impose.
func (m *Model) AskValues(c *Call) (refuses string, wait time.Duration) {
	for _, v := range m.valuedOf(c.Resource, spec.Enforce) {
		for _, o := range v.of(c) {
			w, ok := v.fits(m, c, o)
			if !ok {
				return v.rule.ID, 0
			}
			wait = max(wait, w)
		}
	}
	return "", wait
}

// HeldOf returns the units of a value in flight under a hotspot rule, without those of a call.
func (m *Model) HeldOf(c *Call, rule string, x argument.Value) (units int64) {
	for _, v := range m.valuedOf(c.Resource, spec.Enforce) {
		if v.rule.ID != rule {
			continue
		}
		units = v.value(x).held
		for _, o := range v.of(c) {
			if o.Value == x && v.rule.Metric == hotspot.Concurrency && c.State != Blocked {
				units -= o.units
			}
		}
	}
	return units
}

// TurnOf returns the turn of a call in the queue of a value, in units of 2^-32 ns, or nil if it has
// none.
func (m *Model) TurnOf(c *Call, rule string, x argument.Value) *big.Int {
	for _, v := range m.valuedOf(c.Resource, spec.Enforce) {
		for _, t := range c.turns {
			if v.rule.ID == rule && t.queue == v.value(x).queue {
				return t.at
			}
		}
	}
	return nil
}

// Overloaded reports whether the system rule with this ID sees overload and so refuses inbound
// calls.
func (m *Model) Overloaded(id string) bool {
	for _, r := range m.set.System {
		if r.ID == id {
			return m.overloaded(r)
		}
	}
	return false
}
