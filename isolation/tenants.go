package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shown"
)

// tenants are the tenants of a rule that shares its permits between them, or only between levels of
// criticality: then all calls of a level are one tenant's.
type tenants struct {
	sharing      meter.Sharing
	by, weightBy source
}

// shares reports whether the rule shares its permits.
func (r *Rule) shares() bool { return r.Share.By != "" || r.Shed == spec.ShedLevels }

// newTenants returns nil if the rule doesn't share.
func newTenants(r *Rule, now func() int64) *tenants {
	if !r.shares() {
		return nil
	}
	s := r.Share
	if s.By == "" {
		s.PerShareQueue, s.MaxShares = r.MaxQueue, 1
	}
	return &tenants{
		by: sourceOf(s.By), weightBy: sourceOf(s.WeightBy),
		sharing: meter.Sharing{
			Now: now, By: s.By, PerShare: s.PerShareQueue, MaxShares: s.MaxShares,
			Weights: weights(s.Weights), ByClass: s.WeightBy != "", Levels: r.Shed == spec.ShedLevels,
		},
	}
}

var _ [meter.Levels]struct{} = [core.Sheddable - core.CriticalPlus + 1]struct{}{}

// source says what of a call names its tenant: an attachment, the caller, or nothing.
type source struct {
	param  string
	caller bool
}

func sourceOf(text string) source {
	if text == origin {
		return source{caller: true}
	}
	return source{param: strings.TrimPrefix(text, paramPrefix)}
}

// weights returns the weights of values: a name that is a number, as it is usually written, stands
// for the number as well.
func weights(named map[string]int) map[argument.Value]int64 {
	all := make(map[argument.Value]int64, len(named))
	for name, w := range named {
		all[argument.Of(name)] = int64(w)
		if n, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(n, 10) == name {
			all[argument.Int(n)] = int64(w)
		}
	}
	return all
}

// of returns the tenant of a call.
func (t *tenants) of(inv *engine.Invocation) meter.Tenant {
	tenant := meter.Tenant{Name: t.by.of(inv)}
	if t.sharing.ByClass {
		tenant.Class = t.weightBy.of(inv)
	}
	if t.sharing.Levels {
		tenant.Level = int(inv.Level() - core.CriticalPlus) // meter.Levels has room for all
	}
	return tenant
}

// of returns the value of an attachment, the first if there are several, or the caller.
func (s source) of(inv *engine.Invocation) argument.Value {
	switch {
	case s.caller && inv.Origin() != "":
		return argument.Of(inv.Origin())
	case s.caller || s.param == "":
		return argument.Value{}
	}
	switch v, sole := inv.ParamValue(s.param); {
	case !sole:
		return inv.ParamValues(s.param)[0].Value
	case v != nil:
		return *v
	}
	return argument.Value{}
}

// shares reports whether the rule's tenants share its queue.
func (c *controller) shares() bool { return c.tenants != nil }

// sharing returns the sharing of a rule, or nil if it has none or there is no rule.
func (c *controller) sharing() *meter.Sharing {
	if c == nil || !c.shares() {
		return nil
	}
	return &c.tenants.sharing
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
	g, claim, t := n.NeedSemaphore(c.owner), c.claim(inv, revision), c.tenants.of(inv)
	if g.MayJoinShare(claim, &t, inv.Now()) || n.Settle(g) && g.MayJoinShare(claim, &t, inv.Now()) {
		return true
	}
	g.RefusedShare(&t)
	return false
}

// joinShare is join for a rule with shares.
func (c *controller) joinShare(inv *engine.Invocation, revision uint64) bool {
	n := &c.resource.StatisticNode
	g, claim, t := n.NeedSemaphore(c.owner), c.claim(inv, revision), c.tenants.of(inv)
	got, share, place := g.JoinShare(claim, &c.tenants.sharing, &t, inv.Now())
	if !got && n.Settle(g) && place == nil {
		got, share, place = g.JoinShare(claim, &c.tenants.sharing, &t, inv.Now())
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
	t := c.tenants.of(inv)
	switch got, share, place := g.JoinShare(c.claim(inv, revision), &c.tenants.sharing, &t, inv.Now()); {
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
	g, t := c.node(inv).LookSemaphore(c.owner), c.tenants.of(inv)
	claim := c.claim(inv, revision)
	share := g.LookShare(claim, &c.tenants.sharing, &t, inv.Now())
	switch {
	case share.Runs:
		j.Outcome = core.Passes
	case share.Waits:
		j.Outcome = core.Waits
		j.Why = fmt.Sprintf("%s of %d in its share", ordinal(share.Place), share.Queued+1)
	default:
		j.Outcome = core.Refused
	}
	j.Measures = append(j.Measures, core.Measure{
		Of: "units of its share", For: c.tenants.shareName(&share.ShareStats), Measured: float64(share.Held), Limit: share.Part,
	})
}

// ordinal returns "1st", "2nd" and so on.
func ordinal(n int) string {
	ending := "th"
	if n/10%10 != 1 && n%10 <= 3 {
		ending = [4]string{"th", "st", "nd", "rd"}[n%10]
	}
	return strconv.Itoa(n) + ending
}

// shareName names a share for people: the tenant, the level of its calls, or both.
func (t *tenants) shareName(x *meter.ShareStats) (name string) {
	level := (core.CriticalPlus + core.Level(x.Level)).String()
	switch text, ok := x.Tenant.Scalar().(string); {
	case t.sharing.By == "":
		return level
	case x.Other > 0:
		name = fmt.Sprintf("others %d", x.Other)
	case x.Tenant.IsNone():
		name = "no tenant"
	case ok:
		name = shown.Label(text)
	default:
		name = shown.Label(x.Tenant.String())
	}
	if t.sharing.Levels {
		name += ", " + level
	}
	return name
}
