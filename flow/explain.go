package flow

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Explain says how each rule would judge the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, controllers := range [...][]*controller{rs.Holding, rs.sharing, rs.Shadows} {
		for _, c := range controllers {
			j := core.Judgement{Rule: c.rule.ID}
			if n := c.looksAt(inv, rs); n != nil && c.lease != nil {
				c.explainShared(inv, rs, &j)
			} else if n != nil {
				c.explain(inv, n, &j)
			} else {
				j.Outcome, j.Why = core.NotJudged, c.concern(inv, rs)
			}
			all = append(all, j)
		}
	}
	return all
}

// looksAt is counts for a call that hasn't arrived, perhaps by a controller that only looks. The
// call would be the first for a resource that looks at itself.
func (c *controller) looksAt(inv *engine.Invocation, rs *checker) *node.StatisticNode {
	n := c.counts(inv, rs)
	itself := c.rule.Relation == Associated && c.rule.Ref == inv.Resource().Name() && c.selects(inv.Origin(), rs)
	if c.node != nil || itself && n == nil {
		return &inv.Resource().StatisticNode
	}
	return n
}

// concern says which calls the rule is about, for a call that it isn't about.
func (c *controller) concern(inv *engine.Invocation, rs *checker) string {
	switch {
	case c.rule.Relation == Associated && c.selects(inv.Origin(), rs):
		return fmt.Sprintf("no call has come for %q, which it looks at", c.rule.Ref)
	case c.rule.Origin == OriginOther:
		return "it is about callers that no other rule names"
	case c.rule.Origin != OriginDefault:
		return fmt.Sprintf("it is about calls from %q", c.rule.Origin)
	}
	return fmt.Sprintf("it is about calls in the context %q", c.rule.Ref)
}

// explain is ask with the figures it goes by, and leaves no trace.
func (c *controller) explain(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	switch {
	case c.rule.Threshold == 0:
		j.Outcome, j.Why = core.Refused, "its threshold is 0: it refuses every call"
	case c.queue != nil:
		c.explainQueue(inv, n, j)
	case c.bucket != nil:
		c.explainBucket(inv, j)
	case c.rule.Metric == Concurrency:
		c.explainPermits(inv, n, j)
	default:
		c.explainWindow(inv, n, j)
	}
	if len(j.Measures) > 0 && c.rule.Relation == Associated {
		j.Measures[0].For, j.Measures[0].Remaining = c.rule.Ref, nil // such calls take nothing there
	}
}

func (c *controller) explainShared(inv *engine.Invocation, rs *checker, j *core.Judgement) {
	j.Measures = []core.Measure{c.leased(inv, rs).Explain(inv, inv.Units(), j)}
}

func (c *controller) explainQueue(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	perUnit := c.lookPerUnit(inv.Now(), n)
	wait, ok := c.queue.fits(inv.Now(), meter.Cost(inv.Units(), perUnit), c.rule.MaxWait, inv.Prioritized())
	inv.JudgeWait(j, wait, ok, c.rule.MaxWait)
	j.About = !ok && (c.moves() || inv.Prioritized())
	left := c.queue.left(inv.Now(), meter.Cost(1, perUnit), c.rule.MaxWait, inv.Prioritized())
	j.Measures = []core.Measure{engine.MeasureTurns(wait, c.rule.MaxWait, left)}
}

func (c *controller) explainBucket(inv *engine.Invocation, j *core.Judgement) {
	now, units := inv.Now(), inv.Units()
	c.bucket.mu.Lock()
	tokens := c.bucket.tokens // a copy
	c.bucket.mu.Unlock()
	inv.JudgeTokens(j, tokens, units, c.size)
	j.Measures = []core.Measure{engine.MeasureTokens(tokens, now, c.size)}
}

func (c *controller) explainPermits(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	g, limit := n.LookSemaphore(c.meter.Owner), c.lookLimit(inv.Now(), n)
	n.Settle(g)
	if !g.Fits(inv.Units(), limit) {
		j.Outcome = core.Refused
	}
	j.Measures = []core.Measure{engine.MeasureUnits("units in flight", g.InUse(), limit)}
}

func (c *controller) explainWindow(inv *engine.Invocation, n *node.StatisticNode, j *core.Judgement) {
	now, units := inv.Now(), inv.Units()
	w, found := c.lookWindow(n, now)
	limit := c.lookLimit(now, n)
	m := engine.MeasureUnits("units in "+c.rule.Interval.String(), w.Sum(now), limit)
	ok := false
	if c.rule.Relation == Associated {
		ok = w.HasRoom(now, units, limit)
	} else {
		ok = w.Fits(now, units, limit)
		*m.Remaining = w.Room(now, limit)
	}
	if !ok && c.borrows(inv) {
		if wait, can := w.CanBorrow(now, units, limit, c.engine.Config().OccupyTimeout); can {
			inv.JudgeWait(j, wait, true, 0)
			ok = true
		}
	}
	if !ok {
		wait, known := w.RetryAfter(now, units, limit)
		inv.JudgeRefused(j, wait, known)
		borrowed := c.rule.Relation == Associated && w.Waiting(now) > 0
		j.About = known && (!found || borrowed || c.borrows(inv) || c.moves() && now/int64(time.Second) != (now+int64(wait))/int64(time.Second))
	}
	j.Measures = []core.Measure{m}
}

// moves reports whether the limit changes as time passes.
func (c *controller) moves() bool { return c.warm != nil || c.memory != nil }

// lookLimit is limitAt without a trace.
func (c *controller) lookLimit(now int64, n *node.StatisticNode) int64 {
	if c.warm != nil && c.memory == nil {
		return c.warmLimit(c.warm.look(now, n))
	}
	return c.limitAt(now, n)
}

// lookPerUnit is perUnit without a trace.
func (c *controller) lookPerUnit(now int64, n *node.StatisticNode) float64 {
	if c.warm != nil && c.memory == nil {
		return float64(time.Second) / c.warm.look(now, n)
	}
	return c.perUnit(now, n)
}

// lookWindow is windowOn without a trace. If there is no window, it uses what the node counted,
// with less precise times.
func (c *controller) lookWindow(n *node.StatisticNode, now int64) (w *stat.Window, found bool) {
	if c.window != nil && c.rule.Relation != Associated {
		return c.window, true
	}
	if !c.rule.Info().Named() && c.resource.Name() == node.OverflowName {
		if w = n.FindWindow(c.meter); w == nil { // the node counted the calls of all names
			w, _ = stat.NewWindow(c.meter.Shape)
		}
		return w, true
	}
	return n.LookWindow(now, c.meter)
}

// left is how many more turns there are within maxWait, nil if that can't be known: calls that
// overtake have other turns.
func (t *throttle) left(now int64, cost meter.Moment, maxWait time.Duration, first bool) *int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first && !t.turns.Empty() {
		return nil
	}
	left := t.turns.Last().TurnsWithin(now, cost, maxWait)
	return &left
}
