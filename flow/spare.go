package flow

import (
	"slices"

	"github.com/penstock-go/penstock/core"
)

// spare finds the takers that need not take because another one does. Of rules with a
// fixed limit for all calls of the resource, on one window, the lowest takes first (see
// abundance), and who fits there fits under the others: such a call holds one
// reservation, and the others would look at the same total.
//
// Two things are left. A call that borrows asks how long it has to wait under each of
// them, so prioritized calls take by all. And each rule may have been replaced by one on
// another window, where a call takes under its old rule as well, see takeBucket: so
// who took looks for successors of the spared rules too.
func (rs *Rules) spare() {
	rs.first, rs.spared = nil, nil
	for _, c := range rs.takers {
		if c.plain() && slices.ContainsFunc(rs.first, func(f *controller) bool { return f.plain() && f.window == c.window }) {
			rs.spared = append(rs.spared, c)
		} else {
			rs.first = append(rs.first, c)
		}
	}
}

// plain reports whether the rule holds a fixed limit in one window, for every call.
func (c *controller) plain() bool {
	return c.rule.Mode == core.Enforce && c.rule.Threshold > 0 && c.node != nil && c.window != nil &&
		c.queue == nil && c.warm == nil && c.memory == nil
}

// refusal is what c refused with, or where it took for others, the refusal of the rule
// that was declared first of those that have no room now.
func (rs *Rules) refusal(inv *core.Invocation, c *controller, v core.Verdict) core.Verdict {
	if len(rs.spared) == 0 || !c.plain() {
		return v
	}
	for _, other := range rs.controllers {
		if other == c {
			break
		}
		if other.plain() && other.window == c.window && !c.window.Fits(inv.Now(), inv.Units(), other.limit) {
			return other.refuse()
		}
	}
	return v
}
