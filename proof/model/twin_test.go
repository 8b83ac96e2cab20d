package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
)

// twin is the whole engine once more, for one caller at a time: every call there
// ever was, in a list, and the rules, which look over the list.
type twin struct {
	now        int64
	revision   uint64 // of the rules
	occupy     time.Duration
	calls      []*call
	windows    []*window
	semaphores []*semaphore
	set        []flow.Rule
	rules      []*limiter        // as declared; what is off has one only if it was on
	tallies    map[string]*tally // of the rules, by ID
	entered    map[string]bool   // resources that a call has asked for
	overtakes  map[string]bool   // resources where a prioritized call has asked for a turn
	doubts     bool              // slots are asked again after a wait
	places     map[place]bool    // nodes that calls have made, or rules that hold and name them
}

// place is a node: a resource's, or one of its calls' or of a caller's.
type place struct{ kind, resource, name string }

func cluster(resource string) place { return place{kind: "cluster", resource: resource} }

var inboundRoot = place{kind: "inbound"}

type state int

const (
	asking state = iota
	waiting
	running
	done
	blocked
)

type call struct {
	resource, context, origin string
	units                     int64
	inbound, prioritized      bool
	nodes                     []place // on which it counts

	began    int64
	state    state
	at       int64 // passed, or was refused
	ended    int64
	failed   bool
	borrowed bool
	wake     int64    // of a call that waits, as things stand
	firm     int64    // and not before, whatever becomes of its turns
	turns    []*turn  // in queues
	endless  bool     // its context never ends
	stays    bool     // so, if nobody is asked again after a wait, it doesn't leave
	by       *limiter // the rule that it waits for, or that refused it
	wait     time.Duration
}

// place finds the nodes on which a call counts.
func (c *call) place() {
	c.nodes = []place{{"call", c.resource, c.context}, cluster(c.resource)}
	if c.origin != "" {
		c.nodes = append(c.nodes, place{"origin", c.resource, c.origin})
	}
	if c.inbound {
		c.nodes = append(c.nodes, inboundRoot)
	}
}

func (c *call) on(p place) bool { return slices.Contains(c.nodes, p) }

func (c *call) passed() bool { return c.state == running || c.state == done }

// verdict is what a rule says: refused by a rule, or go after a wait.
type verdict struct {
	refused  *limiter
	wait     time.Duration
	by       *limiter
	borrowed bool
}

// enter is a call that asks, up to its wait if it has one. Its context ends after
// left.
func (t *twin) enter(c *call, left time.Duration) {
	c.began = t.now
	c.place()
	t.calls = append(t.calls, c)
	t.entered[c.resource] = true
	if p := cluster(c.resource); !t.places[p] {
		t.places[p] = true
		t.apply()
	}
	for _, p := range c.nodes {
		t.places[p] = true
	}
	v := t.decide(c, left)
	switch {
	case v.refused != nil:
		t.refuse(c, v.refused)
	case v.wait == 0:
		t.pass(c)
	case left < v.wait:
		t.refuse(c, v.by)
	default:
		c.state, c.wait, c.wake, c.by = waiting, v.wait, t.now+int64(v.wait), v.by
		if v.borrowed {
			c.borrowed = true
			for _, w := range t.windows {
				w.move(c, c.wake)
			}
		}
	}
}

// decide asks every rule that holds, looks whether the call could wait for as long as
// they say, and then lets every rule take: those that only look first, those of few
// calls before those of all, and of those the scarcest.
func (t *twin) decide(c *call, left time.Duration) verdict {
	var longest verdict
	for _, l := range t.of(c.resource) {
		if l.rule.Mode != spec.Enforce || !t.applies(l, c) {
			continue
		}
		wait, ok := t.fits(l, c)
		if !ok {
			return verdict{refused: l}
		}
		if wait > longest.wait {
			longest = verdict{wait: wait, by: l}
		}
	}
	if longest.wait > 0 && left < longest.wait {
		return verdict{refused: longest.by}
	}
	c.stays = c.endless && longest.wait > 0 && !t.doubts
	longest = verdict{}
	takers := t.of(c.resource)
	slices.SortStableFunc(takers, func(a, b *limiter) int {
		return cmp.Or(a.breadth()-b.breadth(), cmp.Compare(a.abundance(), b.abundance()))
	})
	for _, l := range takers {
		if l.shadow() || !t.applies(l, c) {
			continue
		}
		v := t.take(l, c)
		switch {
		case v.refused != nil:
			return v
		case v.borrowed:
			c.firm = max(c.firm, t.now+int64(v.wait))
			if v.wait >= longest.wait {
				longest = v
			}
		case v.wait > longest.wait:
			longest = v
		}
	}
	for _, l := range takers { // a call that borrows counts there too, whoever's calls the rule is about
		if longest.borrowed && !l.shadow() && l.rule.Relation == flow.Chain && l.rule.Ref == c.context && l.meters() && l.own.all() {
			t.windowOf(l, c)
		}
	}
	for _, l := range t.of(c.resource) { // of calls that all others have let pass
		if l.shadow() && t.applies(l, c) && t.take(l, c).refused != nil {
			l.shadowBlocked++
		}
	}
	return longest
}

// refuse leaves no trace of a call but its own block.
func (t *twin) refuse(c *call, by *limiter) {
	c.state, c.at, c.by = blocked, max(c.began, t.now), by
	by.refused++
	t.leaveTurns(c)
	for _, l := range t.rules {
		if l.bucket != nil {
			l.bucket.giveBack(c, t.now)
		}
	}
	for _, w := range t.windows {
		w.remove(c)
	}
	for _, g := range t.semaphores {
		delete(g.holders, c)
	}
}

// pass counts a call where no rule has done so.
func (t *twin) pass(c *call) {
	for _, x := range c.turns {
		x.come()
	}
	runs := max(c.wake, t.now)
	if !c.borrowed {
		runs = t.now
	}
	c.state, c.at = running, max(c.began, t.now)
	for _, p := range c.nodes {
		for _, w := range t.windows {
			if w.on == p && w.owner.all() && w.of(c) == nil {
				w.see(t.now)
				w.add(&charge{call: c, bucket: min(max(w.number(runs), w.head()), w.head()+w.ahead()), units: c.units})
			}
		}
		for _, g := range t.semaphores {
			if g.on == p && g.owner.all() {
				g.holders[c] = true
			}
		}
	}
}

func (t *twin) exit(c *call, failed bool) {
	c.state, c.ended, c.failed = done, max(c.at, t.now), failed
	for _, g := range t.semaphores {
		delete(g.holders, c)
	}
}

// semaphore is how many units are inside, or wait and hold their place.
type semaphore struct {
	on      place
	owner   owner
	holders map[*call]bool
}

func (g *semaphore) inUse() (units int64) {
	for c := range g.holders {
		units += c.units
	}
	return units
}

// semaphoreOn is the semaphore of a node. One that is new holds those who are inside.
func (t *twin) semaphoreOn(p place, own owner) *semaphore {
	for _, g := range t.semaphores {
		if g.on == p && g.owner == own {
			return g
		}
	}
	g := &semaphore{on: p, owner: own, holders: make(map[*call]bool)}
	for _, c := range t.calls {
		if own.all() && c.state == running && c.on(p) {
			g.holders[c] = true
		}
	}
	t.semaphores = append(t.semaphores, g)
	return g
}

// figures are what a node shows for the calls of [from, to).
type figures struct {
	Pass, Block, Exception, Complete, Occupied, Entered, Exited int64
	RT                                                          time.Duration
}

func (f figures) String() string {
	type plain figures // without this method
	return fmt.Sprintf("%+v", plain(f))
}

func (t *twin) figures(p place, from int64) (f figures) {
	for _, c := range t.calls {
		if !c.on(p) {
			continue
		}
		if c.state == blocked && c.at >= from {
			f.Block += c.units
		}
		if c.passed() && c.at >= from {
			f.Pass += c.units
			f.Entered++
			if c.borrowed {
				f.Occupied += c.units
			}
		}
		if c.state == done && c.ended >= from {
			f.Complete += c.units
			f.Exited++
			f.RT += time.Duration(c.ended - c.began)
			if c.failed {
				f.Exception += c.units
			}
		}
	}
	return f
}

// allTime is before all events.
const allTime = math.MinInt64

func contextName(name string) string {
	if name == "" {
		return node.DefaultContext
	}
	return name
}

// of are the rules of a resource that are not off, in order.
func (t *twin) of(resource string) (rules []*limiter) {
	for _, l := range t.rules {
		if l.rule.Resource == resource && l.rule.Mode != spec.Off {
			rules = append(rules, l)
		}
	}
	return rules
}

// applies reports whether a rule has anything to say about a call.
func (t *twin) applies(l *limiter, c *call) bool {
	switch l.rule.Origin {
	case flow.OriginDefault:
	case flow.OriginOther:
		if c.origin == "" {
			return false
		}
		for _, other := range t.of(c.resource) {
			if other.rule.Origin == c.origin && (l.rule.Mode == spec.Shadow || other.rule.Mode == spec.Enforce) {
				return false
			}
		}
	default:
		if c.origin != l.rule.Origin {
			return false
		}
	}
	switch l.rule.Relation {
	case flow.Associated:
		return l.rule.Threshold == 0 || t.entered[l.rule.Ref]
	case flow.Chain:
		return c.context == l.rule.Ref
	}
	return true
}
