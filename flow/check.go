package flow

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker holds the compiled flow rules of one resource. Safe for concurrent use.
type checker struct {
	family.Rules[controller] // without the rules that a cluster shares; in the order in which they are asked

	takers  []*controller      // in the order in which they take; see breadth and abundance
	spared  []*window          // need not take; see spare
	sole    *window            // window of the only enforced rule, if it is plain; otherwise nil
	sharing []*controller      // enforced rules whose limits a cluster shares
	shared  family.SharedRules // the same, in the order in which they are asked
	costs   engine.Coster      // rules with a unit; nil if there are none
	// named holds the callers that some rule names, by the mode of the rule that looks them up: an
	// enforced rule sees the names in enforced rules, a shadow rule sees all names.
	named [2]map[string]bool
}

// Ask returns the first refusal or, if there is none, the longest wait as of now. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	var longest engine.Verdict
	for i, c := range rs.Holding {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.enforcer.ask(inv, n)
		if v.Block != nil {
			if c.notifier != nil { // settled calls may have used more
				c.notice(inv, n)
			}
			if c.rule.Unit != "" {
				return rs.longestRefusal(inv, i, v)
			}
			return v
		}
		if v.Wait > longest.Wait {
			longest = v
		}
	}
	return longest
}

// Take lets every rule take. It returns the first refusal or, if there is none, the longest wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	if w := rs.sole; w != nil && inv.HeldBucket(w.one) == nil { // a shortcut for most calls
		if receipt, ok := w.one.TryAdd(inv.Lane(), inv.Now(), inv.Units(), w.limit); ok {
			inv.ReserveBucket(w.one, receipt, inv.Units(), w.limit)
			if w.next.Load() == nil { // read after taking; see window.takeIn
				return engine.Verdict{}
			}
		} else if !inv.Prioritized() {
			return w.refuse()
		}
	}
	var longest engine.Verdict
	for _, c := range rs.takers {
		if w := c.costs; w != nil && w.takeCost(inv) {
			continue
		}
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.enforcer.take(inv, n)
		if v.Block != nil {
			if c.notifier != nil {
				c.notice(inv, n)
			}
			return rs.refusal(inv, c, v)
		}
		if v.Wait > 0 {
			longest = longer(inv, v, longest)
		}
	}
	for _, w := range rs.spared {
		if w.next.Load() == nil {
			continue
		}
		if longest = w.takeNext(inv, w.node, w.limit, longest); longest.Block != nil {
			break
		}
	}
	// Shared rules are asked later, and lend too.
	if longest.Borrowed || inv.Prioritized() && len(rs.sharing) > 0 {
		rs.openWindowsOnPath(inv)
	}
	return longest
}

// openWindowsOnPath creates the windows in which a call that borrows will count because it comes
// through the context that the rule names, though the rule applies to other callers. If the first
// of those callers created the window, it would start from the node's counts. A borrower is counted
// when it is admitted: too early for its bucket if Sleep returned early, as on a test clock, or by
// a tick on a coarse clock.
func (rs *checker) openWindowsOnPath(inv *engine.Invocation) {
	for _, c := range rs.takers {
		if c.rule.Relation != Chain || c.window == nil || owned(c.meter) {
			continue
		}
		if n := c.onPath(inv); n != nil {
			c.window.on(n, inv.Now())
		}
	}
}

// Shadow lets every shadow rule take.
func (rs *checker) Shadow(inv *engine.Invocation) {
	for _, c := range rs.Shadows {
		if n := c.counts(inv, rs); n != nil && c.enforcer.take(inv, n).Block != nil {
			c.record.ShadowBlocked.Add(inv.Lane(), 1)
		}
	}
	if len(rs.Notices) > 0 {
		rs.notice(inv)
	}
}

// Direct reports whether a single rule takes for all of them and never queues a call.
func (rs *checker) Direct() bool {
	return len(rs.takers) == 1 && !rs.takers[0].rule.Behavior.queues()
}

// longer returns a refusal, or the longer of two waits. A call that borrows waits for no turn.
func longer(inv *engine.Invocation, next, longest engine.Verdict) engine.Verdict {
	if next.Borrowed {
		inv.WaitAtLeast(next.Wait)
	}
	if next.Block != nil || next.Outlasts(longest) {
		return next
	}
	return longest
}
