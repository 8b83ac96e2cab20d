package replay

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// flowTwin is what the runner itself knows of one flow rule on one resource beside
// the calls in the book: its queue, and how warm the resource is. So it says what our
// rule must do, whatever Java's did.
type flowTwin struct {
	queue turns // stays where the rule only rejects for a while
	warm  *warmth
}

// flowKey names a flow rule on a resource: a pattern has a limit for each.
type flowKey struct{ rule, resource string }

// grant is what one rule gives to a call.
type grant struct {
	applied
	wait    time.Duration
	borrows bool  // from a coming bucket
	bucket  int64 // start of the bucket in which a window counts the call
	limit   int64 // of that window
	cost    turn  // of a turn in a queue
}

// ask is what a rule says to a call if it is the only one. It takes nothing; only the
// tokens of a warm-up are settled by the first call in a second that is asked.
func (p *player) ask(x applied, c *call) (g grant, ok bool) {
	g.applied = x
	now := c.asked
	switch {
	case x.Threshold == 0:
		return g, false
	case x.queues():
		perUnit := float64(x.Interval) / x.Threshold
		if x.warms() {
			perUnit = float64(time.Second) / p.rate(x, c)
		}
		g.cost = cost(c.units, perUnit)
		at, _, _ := p.flowTwin(x, c).queue.queue(c, g.cost)
		g.wait = at.after(now)
		return g, g.wait <= x.MaxWait
	case x.Metric == flow.Concurrency:
		return g, p.book.held(x.node, now)+c.units <= x.limit()
	}
	w := p.book.window(x, now)
	g.limit, g.bucket = p.limit(x, c), w.start
	switch {
	case x.Relation == flow.Associated: // only looks at the present
		ok = w.used(w.start)+c.units <= g.limit
	default:
		ok = w.fits(w.start, c.units, g.limit)
	}
	if !ok && c.prioritized && x.lends() {
		g.bucket, ok = w.borrow(c.units, g.limit, int64(p.config.occupyTimeout()))
		g.wait, g.borrows = time.Duration(g.bucket-now), true
	}
	return g, ok
}

// flowTwin is the twin of a rule on the resource of a call.
func (p *player) flowTwin(x applied, c *call) *flowTwin {
	key := flowKey{x.ID, c.place.resource}
	if p.flowTwins[key] == nil {
		p.flowTwins[key] = &flowTwin{}
	}
	return p.flowTwins[key]
}

// rate is the units a second that a call may get.
func (p *player) rate(x applied, c *call) float64 {
	if !x.warms() {
		return x.perSecond()
	}
	t := p.flowTwin(x, c)
	if t.warm == nil {
		t.warm = &warmth{}
	}
	second := floor(c.asked, int64(time.Second))
	return t.warm.rate(x.activeRule, second, passage{
		node: x.node,
		last: p.book.passed(x.node, second-int64(time.Second), second, c.asked),
		all:  p.book.passed(x.node, math.MinInt64, math.MaxInt64, c.asked),
	})
}

// limit is the units that the window of a rule may count.
func (p *player) limit(x applied, c *call) int64 {
	rate := p.rate(x, c)
	if rate >= x.perSecond() {
		return x.limit()
	}
	cold := max(x.Threshold/float64(x.ColdFactor), min(x.Threshold, 1))
	return int64(min(max(rate*x.Interval.Seconds(), cold), x.Threshold))
}

// goOn is what becomes of the twin of a rule as others are loaded. One that did not
// change goes on as it is; one that did has its queue, and is as warm as it was.
func (t *flowTwin) goOn(old, rules []activeRule, id string) {
	find := func(rules []activeRule) *activeRule {
		return &rules[slices.IndexFunc(rules, func(r activeRule) bool { return r.ID == id })]
	}
	before, now := find(old), find(rules)
	switch {
	case spec.Equal(before.Rule, now.Rule):
	case before.warms() && now.warms():
		t.warm = t.warm.under(now)
	default:
		t.warm = nil
	}
}
