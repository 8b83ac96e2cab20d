package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// agree compares all counts of the engine with the model's: every node, window, semaphore and
// rule. So anything left behind by a refused call shows at the next step.
func (m *machine) agree() {
	e := m.guard.Engine()
	waiters, inside := int64(0), 0
	for _, c := range m.model.calls {
		switch c.State {
		case Waiting:
			waiters++
			inside++
		case Running:
			inside++
		}
	}
	same(m, "calls that wait", e.Waiting(), waiters)
	fell := 0
	for _, s := range m.stumblers {
		fell += s.fell
		same(m, "what slot "+s.name+" holds", s.held, inside)
	}
	same(m, "panics in slots", e.Failures(), int64(fell))

	m.agreeOn(inboundRoot, &e.Tree().Inbound().StatisticNode)
	same(m, "revision of the rules", e.Rules().Revision, m.model.revision)
	inbound := &e.Tree().Inbound().StatisticNode
	nodes, windows, semaphores := 1, len(inbound.Meters().Windows()), len(inbound.Meters().Semaphores())
	e.EachResource(func(r *engine.Resource) {
		visit := func(p place, n *node.StatisticNode) {
			m.agreeOn(p, n)
			if !m.model.places[p] {
				m.fail("%v: the model has no such node", p)
			}
			nodes++
			windows += len(n.Meters().Windows())
			semaphores += len(n.Meters().Semaphores())
		}
		visit(cluster(r.Name()), &r.StatisticNode)
		for context, n := range r.Calls().All() {
			visit(place{"call", r.Name(), context}, &n.StatisticNode)
		}
		for origin, n := range r.Origins().All() {
			visit(place{"origin", r.Name(), origin}, &n.StatisticNode)
		}
	})
	same(m, "nodes", nodes, len(m.model.places))
	same(m, "windows", windows, len(m.model.windows))
	same(m, "semaphores", semaphores, len(m.model.semaphores))

	for _, f := range e.Rules().RuleStats() {
		same(m, "refused by "+f.ID, Figures{f.Refused, f.ShadowBlocked}, m.model.Figures(f.Kind, f.ID))
		for _, l := range m.model.rules {
			if f.Kind == l.kind && f.ID == l.rule.ID {
				m.agreeOnTokens(l, f)
			}
		}
	}
	m.agreeOnBreakers()
}

// agreeOnBreakers compares the changes that breakers have reported since the last comparison, and
// their states.
func (m *machine) agreeOnBreakers() {
	m.mu.Lock()
	heard := m.heard
	m.heard = nil
	m.mu.Unlock()
	same := func(c breaker.Change, d Change) bool {
		return c.Rule == d.Rule && c.Resource == d.Resource && c.From == d.From && c.To == d.To && (d.Value == nil || *d.Value == c.Value)
	}
	if changes := m.model.Changes(); !slices.EqualFunc(heard, changes, same) {
		m.fail("breakers reported %v; the model's: %v", heard, changes)
	}
	for _, b := range m.model.breakers {
		for _, s := range m.guard.Breakers() {
			if s.Rule == b.Rule.ID && s.Resource == b.Resource {
				if s.State != b.State || s.Neutral != b.Neutral {
					m.fail("breaker %s is %v, %d neutral; the model's: %v, %d", s.Rule, s.State, s.Neutral, b.State, b.Neutral)
				}
			}
		}
	}
}

func minute(n *node.StatisticNode, now int64) (sum stat.Counts) {
	for _, second := range n.History(now) {
		sum.Add(&second.Value)
	}
	return sum
}

func (m *machine) agreeOn(p place, n *node.StatisticNode) {
	now := m.model.now
	name := p.kind + " " + p.resource + " " + p.name + ": "
	same(m, name+"totals", shown(n.Totals()), m.model.figures(p, allTime))
	const second = int64(1e9)
	same(m, name+"second", shown(n.Second(now)), m.model.figures(p, floorDiv(now, second/2)*(second/2)-second/2))
	same(m, name+"minute", shown(minute(n, now)), m.model.figures(p, (floorDiv(now, second)-59)*second))
	var calls, units int64
	for _, c := range m.model.calls {
		if c.State == Running && c.on(p) {
			calls++
			units += c.Units
		}
	}
	same(m, name+"calls in flight", n.InFlight(), calls)
	same(m, name+"units in flight", n.UnitsInFlight(), units)
	for _, w := range n.Meters().Windows() {
		owner := ownerOf(w.Owner)
		its := m.model.findWindow(p, w.Shape, owner, w.Era)
		if its == nil {
			m.fail("%s%v of %q, era %v: the model has no such window", name, w.Shape, owner, w.Era)
		}
		its.see(now)
		which := fmt.Sprintf("%v, %v of %q, era %v", name, w.Shape, owner, w.Era)
		same(m, which+": units in a window", w.Sum(now), its.sum(its.head()))
		same(m, which+": units borrowed", w.Waiting(now), its.waiting())
	}
	for _, g := range n.Meters().Semaphores() {
		owner := ownerOf(g.Owner)
		for _, its := range m.model.semaphores {
			if its.on == p && its.owner == owner {
				same(m, name+"units of semaphore "+string(owner), g.InUse(), its.inUse())
			}
		}
	}
}

// agreeOnTokens compares the tokens left in a rule's bucket.
func (m *machine) agreeOnTokens(l *limiter, f core.RuleStats) {
	if l.rule.Behavior != flow.TokenBucket || l.rule.Threshold == 0 || l.rule.Mode == spec.Off {
		return
	}
	b := f.Details.(flow.Buckets).Buckets[0]
	same(m, "size of the bucket of "+f.ID, b.Size, l.size())
	if left := l.bucket.left(m.model.now, l.size()); math.Abs(b.Tokens-left) > 1e-6 {
		m.fail("tokens of %s: %v; the model: %v", f.ID, b.Tokens, left)
	}
}

// agreeOnRetry compares when a call of one unit may retry.
func (m *machine) agreeOnRetry(c *Call, refusal *core.BlockError) {
	if c.By.again == nil {
		return
	}
	want, isKnown, looked := c.By.again(c)
	if wait, known := refusal.RetryAfter(); looked && (known != isKnown || known && max(0, wait) != want) {
		m.fail("%v may retry after %v, known %v; the model says %v, %v", c, wait, known, want, isKnown)
	}
}

// ownerOf returns the owner of a window or semaphore.
func ownerOf(o any) owner {
	if o == nil {
		return everybody
	}
	return owner(fmt.Sprint(o))
}

func shown(c stat.Counts) figures {
	return figures{c.Pass, c.Block, c.Exception, c.Complete, c.Occupied, c.Entered, c.Exited, c.RT}
}

func same[T comparable](m *machine, what string, engine, its T) {
	if engine != its {
		m.fail("%s: %+v; the model: %+v", what, engine, its)
	}
}
