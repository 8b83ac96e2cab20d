package model

import (
	"fmt"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// agree compares all figures of the engine with the twin's: every node, every
// window, every semaphore, every rule. So a refused call that left anything behind shows
// at the next step.
func (m *machine) agree(t *rapid.T) {
	t.Helper()
	engine := m.guard.Engine()
	waiters, inside := int64(0), 0
	for _, c := range m.twin.calls {
		switch c.state {
		case waiting:
			waiters++
			inside++
		case running:
			inside++
		}
	}
	same(t, "calls that wait", engine.Waiting(), waiters)
	fell := 0
	for _, s := range m.stumblers {
		fell += s.fell
		same(t, "what slot "+s.name+" holds", s.held, inside)
	}
	same(t, "panics in slots", engine.Failures(), int64(fell))

	m.agreeOn(t, inboundRoot, &engine.Tree().Inbound().StatisticNode)
	same(t, "revision of the rules", engine.Rules().Revision, m.twin.revision)
	nodes, windows, semaphores := 1, 0, 0 // with that of all inbound calls
	engine.EachResource(func(r *core.Resource) {
		visit := func(p place, n *node.StatisticNode) {
			m.agreeOn(t, p, n)
			if !m.twin.places[p] {
				t.Fatalf("%v: the twin has no such node", p)
			}
			nodes++
			windows += len(n.Windows())
			semaphores += len(n.Semaphores())
		}
		visit(cluster(r.Name()), &r.StatisticNode)
		for context, n := range r.Calls().All() {
			visit(place{"call", r.Name(), context}, &n.StatisticNode)
		}
		for origin, n := range r.Origins().All() {
			visit(place{"origin", r.Name(), origin}, &n.StatisticNode)
		}
	})
	same(t, "nodes", nodes, len(m.twin.places))
	same(t, "windows", windows, len(m.twin.windows))
	same(t, "semaphores", semaphores, len(m.twin.semaphores))

	figures := engine.Rules().RuleFigures()
	for _, l := range m.twin.rules {
		for _, f := range figures {
			if f.ID == l.rule.ID {
				same(t, "refused by "+f.ID, f.Refused, l.refused)
				same(t, "refused in shadow mode by "+f.ID, f.ShadowBlocked, l.shadowBlocked)
				m.agreeOnTokens(t, l, f)
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

func (m *machine) agreeOn(t *rapid.T, p place, n *node.StatisticNode) {
	now := m.twin.now
	name := p.kind + " " + p.resource + " " + p.name + ": "
	same(t, name+"totals", shown(n.Totals()), m.twin.figures(p, allTime))
	const second = int64(1e9)
	same(t, name+"second", shown(n.Second(now)), m.twin.figures(p, floorDiv(now, fine)*fine+fine-second))
	same(t, name+"minute", shown(minute(n, now)), m.twin.figures(p, (floorDiv(now, second)-59)*second))
	var calls, units int64
	for _, c := range m.twin.calls {
		if c.state == running && c.on(p) {
			calls++
			units += c.units
		}
	}
	same(t, name+"calls in flight", n.InFlight(), calls)
	same(t, name+"units in flight", n.UnitsInFlight(), units)
	for _, w := range n.Windows() {
		owner := ownerOf(w.Owner)
		twin := m.twin.findWindow(p, w.Shape, owner, w.Era)
		if twin == nil {
			t.Fatalf("%s%v of %q, era %v: the twin has no such window", name, w.Shape, owner, w.Era)
		}
		twin.see(now)
		same(t, name+"units in a window", w.Sum(now), twin.sum(twin.head()))
		same(t, name+"units borrowed", w.Waiting(now), twin.waiting())
	}
	for _, g := range n.Semaphores() {
		owner := ownerOf(g.Owner)
		for _, twin := range m.twin.semaphores {
			if twin.on == p && twin.owner == owner {
				same(t, name+"units of a semaphore", g.InUse(), twin.inUse())
			}
		}
	}
}

// agreeOnTokens compares how many tokens are left of the bucket of a rule.
func (m *machine) agreeOnTokens(t *rapid.T, l *limiter, f core.RuleFigures) {
	t.Helper()
	if l.rule.Behavior != flow.TokenBucket || l.rule.Threshold == 0 || l.rule.Mode == spec.Off {
		return
	}
	b := f.Details.(flow.Buckets).Buckets[0]
	same(t, "size of the bucket of "+f.ID, b.Size, l.size())
	if left := l.bucket.left(m.twin.now, l.size()); math.Abs(b.Tokens-left) > 1e-6 {
		t.Fatalf("tokens of %s: %v; the twin: %v", f.ID, b.Tokens, left)
	}
}

// agreeOnRetry compares when a call of one unit may come again.
func (m *machine) agreeOnRetry(t *rapid.T, c *call, refusal *core.BlockError) {
	t.Helper()
	var want time.Duration
	switch l := c.by; {
	case l.rule.Threshold == 0:
		return
	case l.rule.Behavior == flow.Throttle:
		one := *c
		one.units = 1
		_, wait := l.queue.next(m.twin.now, m.twin.costOf(l, &one), false)
		want = max(0, wait-l.rule.MaxWait)
	case l.rule.Behavior == flow.TokenBucket && c.units <= l.size():
		want = l.bucket.retryAfter(m.twin.now, l.size())
	default:
		return
	}
	if wait, known := refusal.RetryAfter(); !known || max(0, wait) != want {
		t.Fatalf("%v may come again after %v, known %v; the twin: %v", c, wait, known, want)
	}
}

// ownerOf is whose a window or semaphore is.
func ownerOf(o any) owner {
	if o == nil {
		return everybody
	}
	return owner(fmt.Sprint(o))
}

func shown(c stat.Counts) figures {
	return figures{c.Pass, c.Block, c.Exception, c.Complete, c.Occupied, c.Entered, c.Exited, c.RT}
}

func same[T comparable](t *rapid.T, what string, engine, twin T) {
	if engine != twin {
		t.Fatalf("%s: %+v; the twin: %+v", what, engine, twin)
	}
}
