package model

import (
	"cmp"
	"math"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/isolation"
)

// semaphore counts the units of calls that run, or that wait elsewhere and hold permits. For
// isolation rules it has a queue.
type semaphore struct {
	on        place
	owner     owner
	holders   map[*Call]bool
	rehearsed bool // of a shadow rule: no call waits, but calls are queued
	limit     int64
	queue     []*waiter // in serving order
	paid      int64     // by the first of them, for served calls
}

// waiter is a call in a queue for permits.
type waiter struct {
	call     *Call
	by       *By
	paid     int64 // payment of the call behind it when it arrived, if it jumped ahead
	until    int64 // when it gives up
	attended bool  // no turn is left to wait for
	granted  bool
	lost     bool // it can never be served
}

func (g *semaphore) inUse() (units int64) {
	for c := range g.holders {
		units += c.Units
	}
	return units
}

// semaphoreOn returns a node's semaphore. A new one counts the calls in flight.
func (m *Model) semaphoreOn(p place, own owner) *semaphore {
	for _, g := range m.semaphores {
		if g.on == p && g.owner == own && !g.rehearsed {
			return g
		}
	}
	g := &semaphore{on: p, owner: own, holders: make(map[*Call]bool), limit: math.MaxInt64}
	for _, c := range m.calls {
		if own.all() && c.State == Running && c.on(p) {
			g.holders[c] = true
		}
	}
	m.semaphores = append(m.semaphores, g)
	return g
}

// last returns the position of the last call that has jumped ahead.
func (g *semaphore) last() (n int) {
	for i, w := range g.queue {
		if w.call.Prioritized {
			n = i + 1
		}
	}
	return n
}

// spot returns the position of a prioritized call of the given units: behind the last prioritized
// call, and before the first call whose allowance covers the remaining cost.
func (g *semaphore) spot(units int64) (i int, paid int64) {
	due := units + g.paid
	if i = g.last(); i > 0 {
		due = units + g.queue[i-1].paid
	}
	for ; i < len(g.queue); i++ {
		if has := g.queue[i].call.Units; due <= has {
			return i, due
		}
		due -= g.queue[i].call.Units
	}
	return i, 0
}

// next reports whether the call would be served before all waiting ones.
func (g *semaphore) next(c *Call) bool {
	if len(g.queue) == 0 {
		return true
	}
	i, _ := g.spot(c.Units)
	return c.Prioritized && g.last() == 0 && i == 0
}

func (g *semaphore) fits(units int64) bool { return units <= g.limit && g.inUse() <= g.limit-units }

// mayJoin reports whether a call would be served, or would fit in a queue of at most longest.
func (g *semaphore) mayJoin(c *Call, limit, longest int) bool {
	return c.Units <= int64(limit) && (len(g.queue) < longest || g.next(c) && g.inUse()+c.Units <= int64(limit))
}

// join serves a call or queues it. If it can do neither, the call is refused.
func (g *semaphore) join(c *Call, longest int, until int64) (got bool, w *waiter) {
	switch {
	case c.Units > g.limit:
	case g.next(c) && g.fits(c.Units):
		if len(g.queue) > 0 {
			g.paid += c.Units
		}
		g.holders[c] = true
		return true, nil
	case len(g.queue) < longest:
		w = &waiter{call: c, until: until}
		i := len(g.queue)
		if i == 0 {
			g.paid = 0
		}
		if c.Prioritized {
			i, w.paid = g.spot(c.Units)
		}
		g.queue = slices.Insert(g.queue, i, w)
	}
	return false, w
}

// advance serves the first in the queue while there is room.
func (g *semaphore) advance() {
	for len(g.queue) > 0 && g.fits(g.queue[0].call.Units) {
		w := g.queue[0]
		g.remove(w)
		if w.call.Prioritized {
			g.paid = w.paid
		}
		w.granted, g.holders[w.call] = true, true
	}
}

// remove takes a call out of the queue, together with the payments that an ordinary call has made
// to the prioritized calls right before it.
func (g *semaphore) remove(w *waiter) {
	i := slices.Index(g.queue, w)
	g.queue = slices.Delete(g.queue, i, i+1)
	if w.call.Prioritized {
		return
	}
	for i--; i >= 0 && g.queue[i].call.Prioritized; i-- {
		g.queue[i].paid = 0
	}
	if i < 0 {
		g.paid = 0
	}
}

func (g *semaphore) leave(c *Call) {
	if i := slices.IndexFunc(g.queue, func(w *waiter) bool { return w.call == c }); i >= 0 {
		g.remove(g.queue[i])
	}
}

// setLimit changes the limit. Calls that need more than that lose their place.
func (g *semaphore) setLimit(limit int64) {
	g.limit = limit
	for _, w := range slices.Clone(g.queue) {
		if w.call.Units > limit {
			g.remove(w)
			w.lost = true
		}
	}
	g.advance()
}

// line is a shadow isolation rule at a resource.
type line struct {
	rule     isolation.Rule
	resource string
	queue    *semaphore
}

// tightest returns the isolation rule that decides at a resource, or nil if none is enforced.
func (m *Model) tightest(resource string) (tightest *isolation.Rule) {
	for _, r := range about(m, m.set.Isolation, resource) {
		if r.Mode != spec.Enforce {
			continue
		}
		if tightest == nil || cmp.Or(cmp.Compare(r.Threshold, tightest.Threshold),
			cmp.Compare(r.MaxQueue, tightest.MaxQueue), cmp.Compare(r.MaxWait, tightest.MaxWait)) < 0 {
			tightest = &r
		}
	}
	return tightest
}

// lineOf returns the queue of a resource.
func (m *Model) lineOf(resource string) *semaphore { return m.semaphoreOn(cluster(resource), permits) }

// join acquires permits for a call, or queues it for them.
func (m *Model) join(c *Call, r *isolation.Rule) bool {
	got, w := m.lineOf(c.Resource).join(c, r.MaxQueue, m.now+int64(r.MaxWait))
	if w != nil {
		w.by = m.by(core.KindIsolation, r.ID)
		if c.Left != Endless {
			w.until = min(w.until, m.now+int64(c.Left))
		}
		c.queued = w
	}
	return got || w != nil
}

// rehearse acquires a shadow rule's permits for a call, or queues it for them.
func (m *Model) rehearse(c *Call, l *line) {
	g := l.queue
	for _, w := range slices.Clone(g.queue) {
		if w.until < m.now {
			g.remove(w)
			m.by(core.KindIsolation, l.rule.ID).ShadowBlocked++
		}
	}
	g.advance()
	g.setLimit(int64(l.rule.Threshold))
	if got, w := g.join(c, l.rule.MaxQueue, m.now+int64(l.rule.MaxWait)); !got && w == nil {
		m.by(core.KindIsolation, l.rule.ID).ShadowBlocked++
	}
}

// applyIsolation puts the isolation rules into effect.
func (m *Model) applyIsolation(names []string) {
	before := m.lines
	m.lines = nil
	for _, name := range names {
		for _, r := range about(m, m.set.Isolation, name) {
			switch r.Mode {
			case spec.Enforce:
				m.lineOf(name)
			case spec.Shadow:
				l := &line{rule: r, resource: name}
				if i := slices.IndexFunc(before, func(o *line) bool { return o.rule.ID == r.ID && o.resource == name }); i >= 0 {
					l.queue = before[i].queue
				} else {
					l.queue = &semaphore{on: cluster(name), holders: make(map[*Call]bool), owner: "rehearsed", rehearsed: true, limit: int64(r.Threshold)}
					m.semaphores = append(m.semaphores, l.queue)
				}
				m.lines = append(m.lines, l)
			}
		}
	}
}

// limited reports whether an isolation rule has a semaphore.
func (m *Model) limited(g *semaphore) bool {
	if g.rehearsed {
		return slices.ContainsFunc(m.lines, func(l *line) bool { return l.queue == g })
	}
	return m.tightest(g.on.resource) != nil
}

// setLimits applies the rules' current limits, including to waiting calls. Without any rule they
// all run.
func (m *Model) setLimits() {
	for _, g := range m.semaphores {
		if g.owner == permits {
			g.setLimit(m.limitAt(g.on.resource))
		}
	}
}

func (m *Model) limitAt(resource string) int64 {
	if r := m.tightest(resource); r != nil {
		return int64(r.Threshold)
	}
	return math.MaxInt64
}
