package replay

import (
	"slices"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/system"
)

// promise is what we promise for a call, and what it then takes of each rule.
type promise struct {
	verdict
	grants []grant
}

// promised works out what we promise for a call from the rules in force and the calls
// in the book, whatever Java said: the first rule that would refuse it, in the order of
// the chain and as declared, or else the longest wait that one asks for. Each rule is
// asked as if there were no other, and takes nothing yet.
func (p *player) promised(c *call, hot hotVerdict) (said promise) {
	refused := func(family, rule string) promise {
		return promise{verdict: verdict{result: "block", blockedBy: family, rule: rule}}
	}
	if i := slices.IndexFunc(p.lists.rules, func(r authority.Rule) bool { return refuses(r, c.place.resource, c.origin) }); i >= 0 {
		return refused("authority", p.lists.rules[i].ID)
	}
	for _, r := range p.checks.rules {
		if g, ok := p.askSystem(r, c); !ok {
			return refused("system", r.ID)
		} else if g.activeRule != nil {
			said.grants = append(said.grants, g)
		}
	}
	if hot.rule != "" {
		return refused("param", hot.rule)
	}
	said.wait = hot.wait
	for _, x := range p.flowRules(c) {
		g, ok := p.ask(x, c)
		if !ok {
			return refused("flow", x.ID)
		}
		said.wait = max(said.wait, g.wait)
		said.grants = append(said.grants, g)
	}
	for _, t := range p.watching(c.place.resource) {
		if t.refuses(c.asked) {
			return refused("degrade", t.rule.ID)
		}
	}
	said.result = "pass"
	if said.wait > 0 {
		said.result = "wait"
	}
	return said
}

// askSystem is what a system rule says to a call. One that limits is like a flow rule on
// the inbound node.
func (p *player) askSystem(r system.Rule, c *call) (g grant, ok bool) {
	if !c.inbound {
		return g, true
	}
	if x, limits := limitOf(r); limits {
		return p.ask(x, c)
	}
	return g, !p.overloaded(r, c.asked)
}

// checkPromise holds our verdict against what was promised, and enters what an admitted
// call takes.
func (j *judge) checkPromise(m *moment) {
	if m.got != m.promise.verdict {
		j.fail("we promise %v, got %v", m.promise.verdict, m.got)
	}
	j.outcome.Kept++
	if m.got == m.want.verdict() {
		j.outcome.Alike++
	}
	if m.call.blocked {
		return
	}
	j.charge(m.call, m.promise)
	m.hot.charge(m.call, j.config.Sleep == "park")
	if m.call.prioritized {
		j.retime(m.call.asked)
	}
	if j.open[m.call.id].pending == nil { // otherwise see awaited
		for _, t := range j.watching(m.call.place.resource) {
			t.admit(m.call, m.call.released)
		}
	}
}

// charge enters what an admitted call takes of each rule. Of what the rules on one
// window give it takes one thing: the latest bucket, within the lowest limit. If the
// longest wait is for a bucket, every window counts the call there, where that fits.
func (p *player) charge(c *call, said promise) {
	for _, g := range said.grants {
		switch {
		case g.Relation == flow.Associated: // the call is not the other resource's
		case g.queues():
			p.flowTwin(g.applied, c).queue.take(c, g.cost, p.config.Sleep == "park")
		case g.Metric == flow.Concurrency:
			c.holds = append(c.holds, g.node)
		default:
			c.charge(g)
		}
		if g.borrows {
			c.firm = max(c.firm, c.asked+int64(g.wait))
		}
		c.borrowed = c.borrowed || g.borrows && g.wait == said.wait
	}
	if !c.borrowed {
		return
	}
	for i := range c.charges {
		ch := &c.charges[i]
		w := p.book.window(ch.applied, c.asked)
		if at := floor(c.runs(), ch.width()); at > ch.bucket && w.fits(at, c.units, ch.limit) {
			ch.bucket = at
		}
	}
}

// charge notes the units that a rule reserves for the call in a window.
func (c *call) charge(g grant) {
	for i := range c.charges {
		if ch := &c.charges[i]; ch.node == g.node {
			ch.bucket, ch.limit = max(ch.bucket, g.bucket), min(ch.limit, g.limit)
			return
		}
	}
	c.charges = append(c.charges, g)
}
