package flow

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// checker is the flow rules of one resource, compiled. It is safe for concurrent
// use.
type checker struct {
	family.Rules[controller] // without those that a cluster shares; they are asked in this order

	takers  []*controller      // the order in which they take, see breadth and abundance
	spared  []*window          // need not take, see spare
	sole    *window            // of the only enforced one, if it is plain; or nil
	sharing []*controller      // the enforced ones whose limits a cluster shares
	shared  family.SharedRules // the same, as they are asked
	// named are the callers that some rule names, by the mode of the rule that looks: an enforced
	// rule sees what enforced rules name, a shadow rule all names.
	named [2]map[string]bool
}

// Ask returns the first refusal or, if there is none, the longest wait as of now. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict {
	var longest engine.Verdict
	for _, c := range rs.Holding {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.enforcer.ask(inv, n)
		if v.Block != nil {
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
	if w := rs.sole; w != nil && inv.HeldBucket(w.one) == nil { // as below, for most calls
		if receipt, ok := w.one.TryAdd(inv.Lane(), inv.Now(), inv.Units(), w.limit); ok {
			inv.ReserveBucket(w.one, receipt, w.limit)
			if w.next.Load() == nil { // checked after it took, see window.takeIn
				return engine.Verdict{}
			}
		} else if !inv.Prioritized() {
			return w.refuse()
		}
	}
	var longest engine.Verdict
	for _, c := range rs.takers {
		n := c.counts(inv, rs)
		if n == nil {
			continue
		}
		v := c.enforcer.take(inv, n)
		if v.Block != nil {
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
	if longest.Borrowed || inv.Prioritized() && len(rs.sharing) > 0 { // those are asked later, and lend too
		rs.openWindowsOnPath(inv)
	}
	return longest
}

// foresee makes the windows in which a call that borrows will count because it came by their path,
// though their rules are about other callers. If a window were made by the first of these, it would
// begin with what the node has counted. A borrower is counted when it is let in: too early for its
// bucket if the clock's Sleep returned too early, as a test's may, or a coarse one's, by a tick.
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
}

// Direct reports whether a single rule takes for all of them and makes no call wait in a queue.
func (rs *checker) Direct() bool {
	return len(rs.takers) == 1 && !rs.takers[0].rule.Behavior.queues()
}

// longer is a refusal, or the longer of two waits. A call that borrows waits for no turn.
func longer(inv *engine.Invocation, next, longest engine.Verdict) engine.Verdict {
	if next.Borrowed {
		inv.WaitAtLeast(next.Wait)
	}
	if next.Block != nil || next.Outlasts(longest) {
		return next
	}
	return longest
}
