package isolation

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// shares reports whether the rule's tenants share its queue.
func (c *controller) shares() bool { return c.tenants != nil }

// sharing returns the sharing of a rule, or nil if it has none or there is no rule.
func (c *controller) sharing() *meter.Sharing {
	if c == nil || !c.shares() {
		return nil
	}
	return &c.tenants.Sharing
}

// fairChecker is a checker with rules that share their permits between tenants. Calls under other
// rules don't pay for it.
type fairChecker struct {
	*checker
	private *checker // only the rules with their own semaphore
}

// newFair returns nil if no rule shares its permits.
func newFair(rs *checker) *fairChecker {
	if rs.tightest.sharing() == nil && !slices.ContainsFunc(slices.Concat(rs.private, rs.shadows), (*controller).shares) {
		return nil
	}
	private := *rs
	private.tightest = nil
	return &fairChecker{rs, &private}
}

// Ask returns the first refusal. It takes nothing.
func (rs *fairChecker) Ask(inv *engine.Invocation) engine.Verdict {
	c := rs.tightest
	if c.sharing() == nil {
		return rs.checker.Ask(inv)
	}
	if v := rs.private.Ask(inv); v.Block != nil {
		return v
	}
	if !c.askShare(inv, rs.revision) {
		return engine.Verdict{Block: c.refusal}
	}
	return engine.Verdict{}
}

// Take lets every rule take. It returns the first refusal.
func (rs *fairChecker) Take(inv *engine.Invocation) engine.Verdict {
	c := rs.tightest
	if c.sharing() == nil {
		return rs.checker.Take(inv)
	}
	if v := rs.private.Take(inv); v.Block != nil {
		return v
	}
	if !c.joinShare(inv, rs.revision) {
		return engine.Verdict{Block: c.refusal}
	}
	return engine.Verdict{}
}

// Shadow lets every shadow rule take.
func (rs *fairChecker) Shadow(inv *engine.Invocation) {
	for _, c := range rs.shadows {
		if c.shares() {
			c.shadowShare(inv, rs.revision)
		} else {
			c.shadow(inv, rs.revision)
		}
	}
}

// askShare is ask for a rule with shares.
func (c *controller) askShare(inv *engine.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim, t := n.NeedSemaphore(c.owner), c.claim(inv, revision), c.tenants.Of(inv)
	if g.MayJoinShare(claim, &t, inv.Now()) || n.Settle(g) && g.MayJoinShare(claim, &t, inv.Now()) {
		return true
	}
	g.RefusedShare(&t)
	return false
}

// joinShare is join for a rule with shares.
func (c *controller) joinShare(inv *engine.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim, t := n.NeedSemaphore(c.owner), c.claim(inv, revision), c.tenants.Of(inv)
	got, share, place := g.JoinShare(claim, &c.tenants.Sharing, &t, inv.Now())
	if !got && n.Settle(g) && place == nil {
		got, share, place = g.JoinShare(claim, &c.tenants.Sharing, &t, inv.Now())
	}
	switch {
	case got:
		inv.ReserveShare(g, share)
	case place != nil:
		inv.Await(place, c.rule.MaxWait, c.refusal)
	}
	return got || place != nil
}

// shadowShare is shadow for a rule with shares.
func (c *controller) shadowShare(inv *engine.Invocation, revision uint64) {
	if c.amount(inv) == 0 {
		return
	}
	g := c.resource.NeedSemaphore(c.owner)
	if expired := g.Expire(inv.Now()); expired > 0 {
		c.record.ShadowBlocked.Add(inv.Lane(), int64(expired))
	}
	t := c.tenants.Of(inv)
	switch got, share, place := g.JoinShare(c.claim(inv, revision), &c.tenants.Sharing, &t, inv.Now()); {
	case got:
		inv.ReserveShare(g, share)
	case place != nil:
		inv.ReservePlace(place)
		lane, blocked := inv.Lane(), &c.record.ShadowBlocked // the call may end first
		place.Attend(func() {
			if place.Displaced() {
				blocked.Add(lane, 1)
			}
		})
	default:
		c.record.ShadowBlocked.Add(inv.Lane(), 1)
	}
}

// Explain returns the judgement of each rule on the call.
func (rs *fairChecker) Explain(inv *engine.Invocation) []core.Judgement {
	all := rs.checker.Explain(inv)
	for i := range all {
		for _, c := range rs.controllers {
			if c.rule.ID == all[i].Rule && c.shares() && (c == rs.tightest || c.rule.Together || slices.Contains(rs.shadows, c)) {
				c.explainShare(inv, rs.revision, &all[i])
			}
		}
	}
	return all
}

// explainShare corrects the judgement of explain, which knows no shares.
func (c *controller) explainShare(inv *engine.Invocation, revision uint64, j *core.Judgement) {
	if j.Outcome == core.NotJudged {
		return
	}
	g, t := c.node(inv).LookSemaphore(c.owner), c.tenants.Of(inv)
	claim := c.claim(inv, revision)
	share := g.LookShare(claim, &c.tenants.Sharing, &t, inv.Now())
	switch {
	case share.Runs:
		j.Outcome = core.Passes
	case share.Waits:
		j.Outcome = core.Waits
		j.Why = family.PlaceInShare(&share)
	default:
		j.Outcome = core.Refused
	}
	j.Measures = append(j.Measures, core.Measure{
		Of: "units of its share", For: c.tenants.Name(&share.ShareStats), Measured: float64(share.Held), Limit: share.Part,
	})
}
