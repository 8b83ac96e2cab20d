package flow

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/stat"
)

// spare removes the takers that need not take because another one does. Of rules with a fixed limit
// for all calls of the resource, on one window, the lowest takes first (see abundance). A call that
// fits there fits under the others too; one that must borrow there waits at least as long as under
// the others, and by then the window is within their limits as well.
//
// One case remains: each rule may have been replaced by one on another window, where a call under
// the old rule takes as well; see window.takeIn. So a call that took looks for successors of the
// spared rules too.
func (rs *checker) spare() {
	var takers []*controller
	taken := make(map[*stat.Window]bool)
	for _, c := range rs.takers {
		if w := c.window; w != nil && w.plain {
			if taken[w.one] {
				rs.spared = append(rs.spared, w)
				continue
			}
			taken[w.one] = true
		}
		takers = append(takers, c)
	}
	rs.takers = takers
}

// refusal returns the refusal of c or, if c took for other rules, the refusal of the first declared
// rule that has no room now.
func (rs *checker) refusal(inv *engine.Invocation, c *controller, v engine.Verdict) engine.Verdict {
	w := c.window
	if len(rs.spared) == 0 || w == nil || !w.plain {
		return v
	}
	for _, other := range rs.Holding {
		if other == c {
			break
		}
		if o := other.window; o != nil && o.plain && o.one == w.one && !w.one.Fits(inv.Now(), inv.Units(), o.limit) {
			return other.refuse()
		}
	}
	return v
}
