package isolation

import (
	"github.com/penstock-go/penstock/core"
)

// Rules are the isolation rules of one resource, compiled. They are safe for
// concurrent use.
type Rules struct {
	revision    uint64
	controllers []*controller // all of them
	// apart are rules in force whose gauge is their own. They come first: they have no
	// line, so who is refused here waits for nothing.
	apart []*controller
	// tightest is, of those in force on the gauge where every call counts, the one that
	// admits least; nil if there is none. What it admits the others do too.
	tightest *controller
	shadows  []*controller
}

// Ask returns the first refusal, taking nothing. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	for _, c := range rs.apart {
		if !c.ask(inv, rs.revision) {
			return core.Verdict{Block: c.refusal}
		}
	}
	if c := rs.tightest; c != nil && !c.ask(inv, rs.revision) {
		return core.Verdict{Block: c.refusal}
	}
	return core.Verdict{}
}

// Take lets every rule take. It returns the first refusal.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	for _, c := range rs.apart {
		if !c.take(inv, rs.revision) {
			return core.Verdict{Block: c.refusal}
		}
	}
	if c := rs.tightest; c != nil && !c.take(inv, rs.revision) {
		return core.Verdict{Block: c.refusal}
	}
	for _, c := range rs.shadows {
		c.rehearse(inv, rs.revision)
	}
	return core.Verdict{}
}

// DecidesAtOnce reports whether Decide does what Ask and Take do: where all count on one
// gauge, none rehearses and nobody stands in line.
func (rs *Rules) DecidesAtOnce() bool {
	return rs.tightest != nil && rs.tightest.rule.MaxQueue == 0 && len(rs.apart)+len(rs.shadows) == 0
}

// Decide lets the tightest rule take.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	if c := rs.tightest; !c.take(inv, rs.revision) {
		return c.refusal
	}
	return nil
}

// ask reports whether the rule would admit the call, perhaps after a wait, as things
// stand.
func (c *controller) ask(inv *core.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim := n.NeedGauge(c.owner), c.claim(inv, revision)
	return g.MayJoin(claim) || n.Settle(g) && g.MayJoin(claim)
}

// take takes units, or a place in line that the call waits for. The gauge that is at hand
// may have left the node when the rules changed; then it gives nothing away like that.
func (c *controller) take(inv *core.Invocation, revision uint64) bool {
	if c.gauge.TryJoin(inv.Units(), int64(c.rule.Threshold), revision) {
		inv.ReserveGauge(c.gauge)
		return true
	}
	return c.join(inv, revision)
}

// join is take where that needs more than a look.
func (c *controller) join(inv *core.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim := n.NeedGauge(c.owner), c.claim(inv, revision)
	got, place := g.Join(claim)
	if !got && n.Settle(g) && place == nil { // who has a place got from Settle what there was
		got, place = g.Join(claim)
	}
	switch {
	case got:
		inv.ReserveGauge(g)
	case place != nil:
		inv.Await(place, c.rule.MaxWait, c.refusal)
	}
	return got || place != nil
}

// rehearse does what take does, except that nobody waits: a call that would is in line
// until it gets its units, or exits, or would have been refused. That is noticed when
// the next call comes.
func (c *controller) rehearse(inv *core.Invocation, revision uint64) {
	g := c.resource.NeedGauge(c.owner)
	if expired := g.Expire(inv.Now()); expired > 0 {
		c.rehearsed.Add(inv.Lane(), int64(expired))
	}
	switch got, place := g.Join(c.claim(inv, revision)); {
	case got:
		inv.ReserveGauge(g)
	case place != nil:
		inv.ReservePlace(place)
	default:
		c.rehearsed.Add(inv.Lane(), 1)
	}
}
