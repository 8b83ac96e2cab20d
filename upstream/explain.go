package upstream

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shown"
)

// Explain returns the judgement of each rule on the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.Shadows) {
		j := core.Judgement{Rule: c.rule.ID}
		c.explain(inv, &j)
		all = append(all, j)
	}
	return all
}

// explain is like take, but draws nothing: where chance decides, the outcome is unknown.
func (c *controller) explain(inv *engine.Invocation, j *core.Judgement) {
	if c.rule.Obey && c.explainPause(inv, j) {
		return
	}
	if r := c.rule.Retries; r.given() {
		calls, retries := c.state.budget.inFlight()
		limit := r.limit(calls + 1)
		left := max(0, limit-retries)
		j.Measures = append(j.Measures, core.Measure{Of: "retries in flight", Measured: float64(retries), Limit: float64(limit), Remaining: &left})
		if inv.Retry() && left == 0 {
			j.Outcome, j.Why = core.Refused, "the call is a retry: no other will help now"
			return
		}
	}
	if c.rule.Throttle.given() {
		c.explainThrottle(inv, j)
	}
}

// explainPause reports whether a pause decides.
func (c *controller) explainPause(inv *engine.Invocation, j *core.Judgement) bool {
	now := inv.Now()
	s, paused := c.pauses.find(c.pausedBy(inv), now)
	if !paused {
		return false
	}
	if chance := s.chance(now); chance > 0 {
		j.Outcome, j.Why = core.Unknown, fmt.Sprintf("a pause that the server asked for ends: %s of the calls pass", percent(chance))
		return true
	}
	j.Why = "the server has asked for a pause"
	inv.JudgeRefused(j, time.Duration(s.until-now), true)
	return true
}

func (c *controller) explainThrottle(inv *engine.Invocation, j *core.Judgement) {
	now := inv.Now()
	sum, first := c.state.throttle.look(now)
	j.Measures = append(j.Measures, core.Measure{
		Of: "requests in " + c.rule.Throttle.Interval.String(), Measured: float64(sum.requests), Limit: c.rule.Throttle.K * float64(sum.accepts),
	})
	switch p := sum.probability(c.rule.Throttle.K); {
	case p == 0:
	case first:
		j.Why = "it is the first call in this second"
	case p == 1:
		j.Why = "the server accepts nothing: only the first call in each second passes"
		inv.JudgeRefused(j, time.Duration(floor(now)+second-now), true)
	default:
		j.Outcome, j.Why = core.Unknown, percent(p)+" of the calls are refused: the server accepts few"
	}
}

func percent(share float64) string { return shown.Number(100*share) + " %" }
