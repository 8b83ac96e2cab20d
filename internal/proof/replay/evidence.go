package replay

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/model"
)

// clues hold the table's evidence that isn't in the book.
type clues struct {
	lines       map[flowKey]*line
	lookedAt    map[NodeRef]bool // nodes on which Java booked borrowers of other resources
	refused     []JavaFlowRule   // that Java keeps
	carried     map[string]bool  // rules that kept their state over a reload
	javaKeptOld bool             // Java could not load rules, and kept the previous ones
	wentBack    bool             // the clock of the trace went back
	misordered  bool             // Java ended calls that nobody exited
}

// flowKey names a flow rule on a resource: a pattern has a limit for each.
type flowKey struct{ rule, resource string }

// line tracks Java's queue for the calls to one resource under one rule.
type line struct {
	queued  int64 // calls that queued since the queue was idle
	apart   bool  // Java keeps room for a call that it refused then, or gave it room later (D12)
	skipped int64 // when the last borrower that Java let pass ran (B3)
}

func (p *player) line(x applied, c *call) *line {
	key := flowKey{x.ID, c.place.resource}
	if p.lines[key] == nil {
		p.lines[key] = new(line)
	}
	return p.lines[key]
}

// record enters a call in the book, and updates the rules' lines with its effects.
func (p *player) record(m *moment) {
	p.book.add(m.call)
	if !m.want.borrows() {
		p.book.touch(m.call.released, m.call.nodes()...)
	}
	if m.want.BlockedBy == "authority" || m.want.BlockedBy == "system" || m.want.BlockedBy == "param" { // Java has asked no flow rule
		return
	}
	refusedBy := m.index(m.want.Rule)
	if m.want.BlockedBy == "degrade" { // after all of these
		refusedBy = len(m.rules)
	}
	borrowedBy := m.borrowedBy()
	asleep := m.hot.java.wait > 0 && m.config.Sleep != "record"
	for i, x := range m.rules {
		if x.windowed() && (refusedBy < 0 || i <= refusedBy) {
			p.book.touch(m.call.asked, x.node)
		}
		l := p.line(x, m.call)
		switch {
		case m.want.borrows() && x.Relation == flow.Associated:
			p.lookedAt[x.node] = true
		case m.want.Result == "block" && i < refusedBy:
			l.apart = true
		case m.want.borrows() && i > borrowedBy:
			l.skipped = m.call.runs()
		case !m.call.blocked && m.call.wait == 0 && m.want.Result == "pass":
			l.queued, l.apart = 0, false
			if x.queues() {
				l.skipped = 0
			}
		case !m.call.blocked:
			l.queued++
			l.apart = l.apart || asleep
			asleep = asleep || x.queues() && m.config.Sleep != "record"
		}
	}
}

// drift returns how far the wait for a rule may be from Java's. Java rounds the cost of each call,
// and so is off by half a unit for each call that queued since the queue was idle, including this
// one. The unit is a millisecond, or a nanosecond for throttles above 1000 per second or whose
// rounded threshold doesn't divide 1000. A throttle whose whole threshold divides 1000 rounds
// nothing. If Java computes in milliseconds, it uses the clock's, without fractions that a sleep
// may have added; and if rounded waits have moved the clock, it shows another time.
func (p *player) drift(x applied, c *call) time.Duration {
	const truncated = time.Nanosecond // our waits are rounded down
	queued := time.Duration(p.line(x, c).queued + 1)
	var off time.Duration
	if p.config.Sleep == "advance" {
		off = time.Duration(c.asked-c.javaAsked).Abs() + time.Duration(c.javaAsked%int64(time.Millisecond))
	}
	switch rounded := math.Round(x.Threshold); {
	case !x.queues(): // waits for a bucket at most
		return off
	case x.warms():
		return off + queued*time.Millisecond/2 + truncated
	case x.Threshold > 1000 || math.Mod(1000, rounded) != 0:
		return off + (queued+1)/2 + truncated
	case x.Threshold == rounded:
		return off
	}
	return off + queued*time.Millisecond/2 + truncated
}

// moment is a call with Java's verdict, ours, and the rules that apply.
type moment struct {
	*player
	call  *call
	want  *Expect
	got   verdict
	rules []applied
	hot   *hotMoment

	promise  verdict
	servable bool // before the call
}

// settle computes when Java releases the call, whose windows it may borrow from, and how far its
// wait may be from Java's.
func (m *moment) settle() {
	c := m.call
	c.javaReleased = c.javaAsked
	if m.config.Sleep != "record" {
		c.javaReleased += int64(m.want.wait())
	}
	for _, x := range m.rules {
		if m.lends(x) {
			c.lenders = append(c.lenders, x.node)
		}
		c.drift = max(c.drift, m.drift(x, c))
	}
}

// lends reports whether the call may borrow from the rule's window.
func (m *moment) lends(x applied) bool { return m.call.prioritized && x.lends() }

// borrowedBy returns the position of the first rule from which the call may have borrowed.
func (m *moment) borrowedBy() int { return slices.IndexFunc(m.rules, m.lends) }

func (m *moment) now() int64 { return m.call.asked }

// index returns the position of a rule among the applicable ones, or -1 if it doesn't apply.
func (m *moment) index(id string) int {
	return slices.IndexFunc(m.rules, func(x applied) bool { return x.ID == id })
}

// any reports whether one of the decisive rules satisfies f. These are the refusing rules or, if
// none refused, all applicable rules.
func (m *moment) any(f func(x applied) bool) bool {
	refused := m.want.Result == "block" || m.got.result == "block"
	return slices.ContainsFunc(m.rules, func(x applied) bool {
		return (!refused || x.ID == m.want.Rule || x.ID == m.got.rule) && f(x)
	})
}

// after reports whether the difference can come from a rule declared after the one at position i.
func (m *moment) after(i int) bool {
	return i >= 0 && m.any(func(x applied) bool { return m.index(x.ID) > i })
}

// units returns the units that the window of a rule counts, without the call.
func (m *moment) units(x applied) model.Units { return m.unitsOn(x.node, m.call.m) }

// unitsOn returns the units that the windows of a node count, without a call.
func (p *player) unitsOn(ref NodeRef, without *model.Call) model.Units {
	switch ref.Kind {
	case "resource":
		return p.model.Units("cluster", ref.Resource, "", without)
	case "call":
		return p.model.Units("call", ref.Resource, ref.Context, without)
	}
	return p.model.Units(ref.Kind, ref.Resource, ref.Origin, without)
}

// used returns the units that the window of a rule counts before the call.
func (m *moment) used(x applied) int64 { return m.units(x).Now }

// recently reports whether a call that satisfies f was decided or released, or runs, within the
// window of a rule.
func (m *moment) recently(x applied, f func(c *call) bool) bool {
	return x.windowed() && m.book.some(x.node, func(c *call) bool {
		return max(c.released, c.runs()) >= x.oldest(m.now()) && f(c)
	})
}
