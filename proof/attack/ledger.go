package main

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// ledger is a log of calls, kept beside an engine: who came and when, who was let in,
// who has ended. It shares nothing with the engine. Its keepers, one for each rule that
// is enforced, work out from it what that rule may say of a call. Where the documents
// leave open what is counted (in the first interval of a new rule, say) they know only
// limits; elsewhere they know the answer.
type ledger struct {
	now     int64
	keepers []keeper // in the order in which rules are asked
	passed  []*call  // in the order in which they passed
	waiting []*call
	asked   map[string]bool
	known   map[ruleID]bool // rules that were there before, in whatever mode
	sleepy  bool            // some rule has had calls wait, that was not for a permit
	watched bool            // a rule in shadow mode has a queue: a call that waits may wake for its turn there, and sleep on
}

// keeper is what the log says about one rule.
type keeper interface {
	// is names the rule.
	is() ruleID
	// concerns reports whether the rule is about the call.
	concerns(l *ledger, c *call) bool
	// judge says what the rule may do with the call now.
	judge(l *ledger, c *call) opinion
	// over says how the rule has let in more than it has, now that it has let the call in,
	// "" if it hasn't.
	over(l *ledger, c *call) string
	// took is told of a call that was let in, or waits: then the engine is seen to let it
	// sleep for c.sleeps.
	took(l *ledger, c *call)
	// ran is told of a call that runs, at once or after its wait, whether it is concerned
	// or not.
	ran(l *ledger, c *call)
	// left is told of a call that has exited, or was refused although it had taken.
	left(l *ledger, c *call)
	// follow takes over from the keeper of the rule before it was changed; nil if there
	// is none.
	follow(l *ledger, old keeper)
}

// ruleID is how a refusal names a rule.
type ruleID struct {
	kind core.Kind
	id   string
}

// opinion is what a rule may do with a call: pass it, after a wait from least to most, or
// refuse it. If only one of them may be, that must be.
type opinion struct {
	passes, refuses bool
	least, most     time.Duration
}

// The usual opinions.
var (
	pass   = opinion{passes: true}
	refuse = opinion{refuses: true}
	either = opinion{passes: true, refuses: true}
)

// about returns whether a rule is about a resource.
func about(name string, match spec.Match) func(resource string) bool {
	if match == spec.MatchExact {
		return func(resource string) bool { return resource == name }
	}
	return regexp.MustCompile("(?s)^(?:" + name + ")$").MatchString
}

// place is a node: something that calls are counted on.
type place struct{ resource, context, origin string }

// inboundRoot is where all calls that come from outside count.
var inboundRoot = place{context: "(inbound)"}

// counts reports whether the call counts there.
func (p place) counts(c *call) bool {
	if p == inboundRoot {
		return c.inbound
	}
	return p.resource == c.resource && (p.context == "" || p.context == c.context) && (p.origin == "" || p.origin == c.origin)
}

// since reports how long ago that was.
func (l *ledger) since(t int64) time.Duration { return time.Duration(l.now - t) }

// judge asks the keepers what may become of a call: what all of them together may say,
// and the keepers that may refuse it, up to the first that must.
func (l *ledger) judge(c *call) (all opinion, refusers []keeper) {
	all = pass
	for _, k := range l.keepers {
		if !k.concerns(l, c) {
			continue
		}
		o := k.judge(l, c)
		if o.refuses {
			refusers = append(refusers, k)
			all.refuses = true
		}
		if !o.passes {
			all.passes = false
			break
		}
		all.least, all.most = max(all.least, o.least), max(all.most, o.most)
	}
	return all, refusers
}

// took notes that a call was let in, or waits.
func (l *ledger) took(c *call) {
	for _, k := range l.keepers {
		if k.concerns(l, c) {
			k.took(l, c)
		}
	}
	if c.waits() {
		l.waiting = append(l.waiting, c)
	}
}

// ran notes that a call runs.
func (l *ledger) ran(c *call) {
	c.running, c.passedAt = true, l.now
	l.waiting = slices.DeleteFunc(l.waiting, func(w *call) bool { return w == c })
	for _, k := range l.keepers {
		k.ran(l, c)
	}
	l.passed = append(l.passed, c)
}

// left notes that a call exited, or was refused after its wait.
func (l *ledger) left(c *call) {
	c.running = false
	l.waiting = slices.DeleteFunc(l.waiting, func(w *call) bool { return w == c })
	for _, k := range l.keepers {
		k.left(l, c)
	}
}

// load puts other rules in force. A keeper follows the one of the same rule, or of that which
// was renamed.
func (l *ledger) load(set rules.Set, renamed map[ruleID]ruleID) {
	keepers := keepersOf(set)
	for _, old := range l.keepers {
		for q := range turnsOf(old) { // whose turns stand, whatever becomes of the rule
			for _, t := range q.waiting {
				t.call.due = max(t.call.due, q.latestOf(t))
			}
		}
	}
	for _, k := range keepers {
		before := cmp.Or(renamed[k.is()], k.is())
		if i := slices.IndexFunc(l.keepers, func(old keeper) bool { return old.is() == before }); i >= 0 {
			k.follow(l, l.keepers[i])
		} else {
			k.follow(l, nil)
		}
	}
	for _, id := range idsOf(set) {
		l.known[id] = true
	}
	l.keepers, l.watched = keepers, queuesInShadow(set)
	l.sleepy = l.sleepy || slices.ContainsFunc(keepers, func(k keeper) bool {
		w, window := k.(*windowKeeper)
		return turns(k) || window && w.borrows
	})
}

// turns reports whether a rule gives turns that calls wait for.
func turns(k keeper) bool {
	switch k.(type) {
	case *turnKeeper, *valueKeeper:
		return true
	}
	return false
}
