package golden

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// clues are what the table goes by beside the book.
type clues struct {
	lines       map[lineKey]*line
	lookedAt    map[NodeRef]bool // nodes on which Java booked borrowers of other resources
	refused     []JavaFlowRule   // that Java keeps
	carried     map[string]bool  // rules that kept their state over a reload
	javaKeptOld bool             // Java could not load rules, and kept the ones before
	wentBack    bool             // the clock of the trace went back
	misordered  bool             // Java ended calls that nobody exited
}

// line is what the calls to one resource share under one rule: a queue, as far as
// the runner can tell without keeping one.
type line struct {
	slot    int64 // of the last call that was granted one, if known
	known   bool
	queued  int64 // calls that queued since the queue was idle
	charged bool  // Java keeps room for a call that it refused then (D12)
	skipped bool  // Java let a borrower pass by (B3)
}

type lineKey struct{ rule, resource string }

func (p *player) line(x applied, c *call) *line {
	key := lineKey{x.ID, c.place.resource}
	if p.lines[key] == nil {
		p.lines[key] = new(line)
	}
	return p.lines[key]
}

// record enters a call in the book, and follows what it did to the rules' lines.
func (p *player) record(m *moment) {
	p.book.add(m.call)
	refusedBy := m.index(m.want.Rule)
	borrowedBy := m.borrowedBy()
	for i, x := range m.rules {
		l := p.line(x, m.call)
		switch {
		case m.want.borrows() && x.Relation == flow.Associated:
			p.lookedAt[x.node] = true
		case m.want.Result == "block" && i < refusedBy:
			l.charged = true
		case m.want.borrows() && i > borrowedBy:
			l.skipped = true
		case !m.call.blocked && m.call.wait == 0 && m.want.Result == "pass":
			l.queued, l.charged, l.skipped = 0, false, false
		case !m.call.blocked:
			l.queued++
		}
	}
}

// drift is how far the wait for a queue may be from Java's, which rounds the cost
// of each call, and so is off by half a unit for each call that queued since the
// queue was idle, this call included. The unit is a millisecond, or a nanosecond for
// throttles above 1000 a second or whose rounded threshold doesn't divide 1000.
// A throttle whose whole threshold divides 1000 rounds nothing.
func (p *player) drift(x applied, c *call) time.Duration {
	const truncated = time.Nanosecond // our waits are rounded down
	queued := time.Duration(p.line(x, c).queued + 1)
	switch rounded := math.Round(x.Threshold); {
	case !x.queues():
		return 0
	case x.warms():
		return queued*time.Millisecond/2 + truncated
	case x.Threshold > 1000 || math.Mod(1000, rounded) != 0:
		return (queued+1)/2 + truncated
	case x.Threshold == rounded:
		return 0
	}
	return queued*time.Millisecond/2 + truncated
}

// moment is a call that was judged: what Java said, what we said, and the rules that
// apply.
type moment struct {
	*player
	call  *call
	want  *Expect
	got   verdict
	rules []applied
}

// settle works out what the call borrowed and reserved, and how far its wait may be
// from Java's.
func (m *moment) settle() {
	c := m.call
	var holders int
	for _, x := range m.rules {
		if x.windowed() && x.Relation != flow.Associated {
			c.reserved = append(c.reserved, x.node)
			holders++
		}
		if x.queues() {
			holders++
		}
		c.drift = max(c.drift, m.drift(x, c))
	}
	if !c.blocked && c.wait > 0 && c.prioritized {
		c.borrowed = slices.ContainsFunc(m.rules, func(x applied) bool {
			return m.lends(x) && c.runs()%x.width() == 0
		})
		c.unsure = holders > 1
	}
}

// lends reports whether the call may borrow from the rule's window.
func (m *moment) lends(x applied) bool {
	return m.call.prioritized && x.windowed() && !x.warms()
}

// borrowedBy is the place of the first rule from which the call may have borrowed.
func (m *moment) borrowedBy() int { return slices.IndexFunc(m.rules, m.lends) }

func (m *moment) now() int64 { return m.call.asked }

// index is the place of a rule among those that apply, -1 if it does not.
func (m *moment) index(id string) int {
	return slices.IndexFunc(m.rules, func(x applied) bool { return x.ID == id })
}

// any reports whether one of the rules that made the difference satisfies f: those
// that refused the call, or if none did, those that apply.
func (m *moment) any(f func(x applied) bool) bool {
	refused := m.want.Result == "block" || m.got.result == "block"
	return slices.ContainsFunc(m.rules, func(x applied) bool {
		return (!refused || x.ID == m.want.Rule || x.ID == m.got.rule) && f(x)
	})
}

// after reports whether the difference can come from a rule that was declared after
// the one in place i.
func (m *moment) after(i int) bool {
	return i >= 0 && m.any(func(x applied) bool { return m.index(x.ID) > i })
}

// used is the units that the window of a rule counts before the call.
func (m *moment) used(x applied) int64 {
	units, _ := m.book.charged(x.node, x.oldest(m.now()), x.oldest(m.now())+int64(x.Interval))
	return units
}

// most is the greatest that the window may count for as long as what is taken now
// counts.
func (m *moment) most(x applied) (most int64) {
	for i := range int64(x.Buckets) {
		start := x.oldest(m.now()) + i*x.width()
		units, unsure := m.book.charged(x.node, start, start+int64(x.Interval))
		most = max(most, units+unsure)
	}
	return most
}

// recently reports whether a call that satisfies f is in the window of a rule: was
// decided or released, or runs, within it.
func (m *moment) recently(x applied, f func(c *call) bool) bool {
	return x.windowed() && m.book.some(x.node, func(c *call) bool {
		return max(c.released, c.runs()) >= x.oldest(m.now()) && f(c)
	})
}
