package model

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// limiter is one rule at work.
type limiter struct {
	rule   flow.Rule
	window *window // of a rule that always counts on the same node
	era    node.Era
	own    string // names its meters if nobody else counts there
	warm   *warmth
	queue  *queue
	*tally // goes on when the rule is changed
}

// tally is the calls that a rule has refused, or in shadow mode would have.
type tally struct{ refused, rehearsed int64 }

func (l *limiter) queues() bool {
	return l.rule.Behavior == flow.Throttle || l.rule.Behavior == flow.WarmUpThrottle
}

func (l *limiter) meters() bool { return l.rule.Metric == flow.QPS && !l.queues() }

// shape is that of the rule's window, nothing if it has none.
func (l *limiter) shape() stat.Shape {
	if !l.meters() {
		return stat.Shape{}
	}
	return stat.Shape{Interval: l.rule.Interval, Buckets: l.rule.Buckets, Strict: l.rule.Strict}
}

// apart reports whether the rule's meters count only what it would admit.
func (l *limiter) apart() bool {
	return l.rule.Mode == core.Shadow && l.rule.Relation != flow.Associated
}

func (l *limiter) role() string {
	switch {
	case l.rule.Relation == flow.Associated:
		return "ref"
	case l.rule.Relation == flow.Chain:
		return "call"
	case l.rule.Origin == flow.OriginDefault:
		return "cluster"
	}
	return "origin"
}

// breadth puts those that only look first, then the narrow ones.
func (l *limiter) breadth() int {
	return slices.Index([]string{"ref", "call", "origin", "cluster"}, strings.Replace(l.role(), "origin", "call", 1))
}

// abundance is units a second, or at once.
func (l *limiter) abundance() float64 {
	if l.rule.Metric == flow.Concurrency {
		return l.rule.Threshold
	}
	return l.rule.Threshold / l.rule.Interval.Seconds()
}

// where is the node that the rule counts a call on.
func (l *limiter) where(c *call) place {
	switch l.role() {
	case "ref":
		return cluster(l.rule.Ref)
	case "call":
		return place{"call", c.resource, c.context}
	case "origin":
		return place{"origin", c.resource, c.origin}
	}
	return cluster(c.resource)
}

func (t *twin) windowOf(l *limiter, c *call) *window {
	if l.window != nil {
		l.window.see(t.now)
		return l.window
	}
	return t.windowOn(l.where(c), l, nil)
}

// limitOf is the units that may pass in an interval.
func (t *twin) limitOf(l *limiter, c *call) int64 {
	threshold := l.rule.Threshold
	if l.warm == nil {
		return int64(threshold)
	}
	rate := l.warm.at(t, l.where(c))
	if rate >= l.warm.c {
		return int64(threshold)
	}
	least := max(threshold/float64(l.rule.ColdFactor), min(threshold, 1))
	return int64(min(threshold, max(least, rate*l.rule.Interval.Seconds())))
}

// costOf is the time that a call takes of the queue.
func (t *twin) costOf(l *limiter, c *call) *big.Int {
	perUnit := float64(l.rule.Interval) / l.rule.Threshold
	if l.warm != nil {
		perUnit = 1e9 / l.warm.at(t, l.where(c))
	}
	cost, _ := new(big.Float).SetMantExp(big.NewFloat(float64(c.units)*perUnit), 32).Int(nil)
	return cost
}

func (l *limiter) borrows(c *call) bool { return c.prioritized && l.rule.Behavior == flow.Reject }

// fits is a rule's answer when it is asked, and the wait. That binds nobody: a window answers for
// the present, and looks at what is borrowed from coming buckets when it is to give.
func (t *twin) fits(l *limiter, c *call) (wait time.Duration, ok bool) {
	switch {
	case l.rule.Threshold == 0:
		return 0, false
	case l.queues():
		_, wait := l.queue.next(t.now, t.costOf(l, c))
		return wait, wait <= l.rule.MaxWait
	case l.rule.Metric == flow.Concurrency:
		return 0, t.gaugeOn(l.where(c), l.own).inUse()+c.units <= int64(l.rule.Threshold)
	}
	w, limit := t.windowOf(l, c), t.limitOf(l, c)
	if w.sum(w.head())+c.units <= limit {
		return 0, true
	}
	if !l.borrows(c) {
		return 0, false
	}
	_, wait, ok = w.borrow(t.now, c.units, limit, t.occupy)
	return wait, ok
}

// take is a rule's decision, with what it takes.
func (t *twin) take(l *limiter, c *call) verdict {
	no := verdict{refused: l}
	switch {
	case l.rule.Threshold == 0:
		return no
	case l.queues():
		at, wait := l.queue.next(t.now, t.costOf(l, c))
		if wait > l.rule.MaxWait {
			return no
		}
		l.queue.slots = append(l.queue.slots, slot{c, at})
		return verdict{wait: wait, by: l}
	case l.rule.Metric == flow.Concurrency:
		g := t.gaugeOn(l.where(c), l.own)
		units := c.units
		if g.holders[c] {
			units = 0
		}
		if g.inUse()+units > int64(l.rule.Threshold) {
			return no
		}
		if l.role() != "ref" {
			g.holders[c] = true
		}
		return verdict{}
	}

	w, limit := t.windowOf(l, c), t.limitOf(l, c)
	held := w.of(c)
	switch {
	case l.role() == "ref":
		if w.sum(w.head())+c.units <= limit {
			return verdict{}
		}
		held = nil
	case held == nil:
		if w.fits(w.head(), c.units, limit) {
			w.add(&charge{c, w.head(), c.units, limit})
			return verdict{}
		}
	default:
		if w.fits(held.bucket, 0, limit) {
			held.limit = min(held.limit, limit)
			return verdict{}
		}
		limit = min(held.limit, limit)
	}
	if !l.borrows(c) {
		return no
	}
	if held != nil {
		w.remove(c)
	}
	bucket, wait, ok := w.borrow(t.now, c.units, limit, t.occupy)
	switch {
	case !ok && held != nil:
		w.add(held)
	case ok && l.role() != "ref":
		w.add(&charge{c, bucket, c.units, limit})
	}
	if !ok {
		return no
	}
	return verdict{wait: wait, by: l, borrowed: true}
}

// queue is the slots of a throttle, in units of 2^-32 ns.
type queue struct{ slots []slot }

type slot struct {
	call *call
	at   *big.Int
}

// next is the slot that a call would get now: a cost after the last one, or at once.
func (q *queue) next(now int64, cost *big.Int) (*big.Int, time.Duration) {
	t := new(big.Int).Lsh(big.NewInt(now), 32)
	if len(q.slots) == 0 {
		return t, 0
	}
	at := new(big.Int).Add(q.slots[len(q.slots)-1].at, cost)
	if at.Cmp(t) < 0 {
		return t, 0
	}
	wait := new(big.Int).Rsh(new(big.Int).Sub(at, t), 32)
	if !wait.IsInt64() {
		return at, math.MaxInt64
	}
	return at, time.Duration(wait.Int64())
}

// giveBack takes out the slot of a call if nobody stands behind it.
func (l *limiter) giveBack(c *call) {
	if l.queue == nil {
		return
	}
	if n := len(l.queue.slots); n > 0 && l.queue.slots[n-1].call == c {
		l.queue.slots = l.queue.slots[:n-1]
	}
}

// warmth is the token bucket of a warm-up: c units a second, f the cold factor.
type warmth struct {
	c, f    float64
	warning int64
	full    int64
	stored  int64
	share   float64 // of full, when it was settled, by this rule or the one before
	second  int64
	begun   bool
}

func newWarmth(r flow.Rule) *warmth {
	w := &warmth{c: r.Threshold / r.Interval.Seconds(), f: float64(r.ColdFactor)}
	period := r.WarmUpPeriod.Seconds()
	w.warning = int64(period*w.c) / int64(r.ColdFactor-1)
	w.full = w.warning + int64(2*period*w.c/(1+w.f))
	return w
}

// at is the rate in units a second. The first call in a second settles the bucket.
func (w *warmth) at(t *twin, p place) float64 {
	second := floorDiv(t.now, int64(time.Second))
	if passed := t.passedIn(p, second-1); !w.begun || second > w.second {
		switch {
		case !w.begun:
			w.stored = w.full
		case w.stored < w.warning || w.stored > w.warning && passed < int64(w.c)/int64(w.f):
			w.stored = int64(min(float64(w.full), float64(w.stored)+float64(second-w.second)*1000*w.c/1000))
		}
		w.stored = max(0, min(w.stored, w.full)-passed)
		w.share = 1 // what holds nothing can't be emptied
		if w.full > 0 {
			w.share = float64(w.stored) / float64(w.full)
		}
		w.begun, w.second = true, second
	}
	if w.stored < w.warning || w.full == w.warning {
		return w.c
	}
	slope := (w.f - 1) / w.c / float64(w.full-w.warning)
	rate := math.Nextafter(1/(float64(w.stored-w.warning)*slope+1/w.c), math.Inf(1))
	return min(w.c, max(w.c/w.f, rate))
}

func (t *twin) passedIn(p place, second int64) (units int64) {
	for _, c := range t.calls {
		if c.passed() && floorDiv(c.at, int64(time.Second)) == second && c.on(p) {
			units += c.units
		}
	}
	return units
}
