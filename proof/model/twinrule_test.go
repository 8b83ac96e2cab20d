package model

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// limiter is one rule at work.
type limiter struct {
	rule   flow.Rule
	window *window // of a rule that always counts on the same node
	era    node.Era
	own    owner // of its meters
	warm   *warmth
	queue  *queue  // what the rule has, or had before it got another behavior
	bucket *bucket // the same
	*tally         // of the rule, whatever resource it is about
}

// tally is the calls that a rule has refused, or in shadow mode would have.
type tally struct{ refused, shadowBlocked int64 }

func (l *limiter) queues() bool {
	return l.rule.Behavior == flow.Throttle || l.rule.Behavior == flow.WarmUpThrottle
}

func (l *limiter) meters() bool {
	return l.rule.Metric == flow.QPS && !l.queues() && l.rule.Behavior != flow.TokenBucket
}

// shape is that of the rule's window, nothing if it has none.
func (l *limiter) shape() stat.Shape {
	if !l.meters() {
		return stat.Shape{}
	}
	return stat.Shape{Interval: l.rule.Interval, Buckets: l.rule.Buckets, Strict: l.rule.Window == flow.Strict}
}

// shadow reports whether the rule only says what it would do. Its meters are none that a
// rule that holds looks at, and it makes no node.
func (l *limiter) shadow() bool { return l.rule.Mode == spec.Shadow }

// owner tells whose a meter is, as the engine's prints.
type owner string

const (
	everybody owner = ""        // rules that hold share it
	watchers  owner = "{<nil>}" // shadow rules do, of those that only look
)

// alone is a shadow rule that has its meters to itself, since a revision.
func alone(rule string, revision uint64) owner {
	return owner(fmt.Sprintf("{%s, revision %d}", rule, revision))
}

// all reports whether every call counts in the meter, and not only what one rule would admit.
func (o owner) all() bool { return o == everybody || o == watchers }

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

// fits is a rule's answer when it is asked, and the wait. One that only looks answers for
// the present.
func (t *twin) fits(l *limiter, c *call) (wait time.Duration, ok bool) {
	switch {
	case l.rule.Threshold == 0:
		return 0, false
	case l.queues():
		_, wait := l.queue.next(t.now, t.costOf(l, c), c.prioritized)
		return wait, wait <= l.rule.MaxWait
	case l.rule.Behavior == flow.TokenBucket:
		return 0, l.bucket.fits(t.now, c.units, l.size())
	case l.rule.Metric == flow.Concurrency:
		return 0, t.semaphoreOn(l.where(c), l.own).inUse()+c.units <= int64(l.rule.Threshold)
	}
	w, limit := t.windowOf(l, c), t.limitOf(l, c)
	if l.role() == "ref" {
		ok = w.sum(w.head())+c.units <= limit
	} else {
		ok = w.fits(w.head(), c.units, limit)
	}
	if ok || !l.borrows(c) {
		return 0, ok
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
		return t.takeTurn(l, c)
	case l.rule.Behavior == flow.TokenBucket:
		if !l.bucket.fits(t.now, c.units, l.size()) {
			return no
		}
		l.bucket.take(c, t.now, c.units)
		return verdict{}
	case l.rule.Metric == flow.Concurrency:
		g := t.semaphoreOn(l.where(c), l.own)
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

// warmth is the token bucket of a warm-up: c units a second, f the cold factor.
type warmth struct {
	c, f    float64
	low     bool // there is no whole token between warning and full
	warning float64
	full    float64
	stored  float64
	share   float64 // of full, when it was settled, by this rule or the one before
	second  int64
	begun   bool

	// Of a low one: the place whose calls it settled by, how many units had passed there,
	// and in which second one did, none if there was none.
	by       place
	total    int64
	lastPass int64
}

const noPass = math.MinInt64

func newWarmth(r flow.Rule) *warmth {
	w := &warmth{c: r.Threshold / r.Interval.Seconds(), f: float64(r.ColdFactor), lastPass: noPass}
	tokens := r.WarmUpPeriod.Seconds() * w.c
	room := 2 * tokens / (1 + w.f)
	if w.low = room < 1; w.low {
		w.warning = tokens / (w.f - 1)
		w.full = w.warning + room
		return w
	}
	w.warning = float64(int64(tokens) / int64(r.ColdFactor-1))
	w.full = w.warning + math.Floor(room)
	return w
}

// goOn takes over how warm the rule before was.
func (w *warmth) goOn(old *warmth) {
	w.share, w.second, w.begun = old.share, old.second, true
	w.by, w.total, w.lastPass = old.by, old.total, old.lastPass
	w.stored = w.share * w.full
	if !w.low {
		w.stored = math.Round(w.stored)
	}
}

// at is the rate in units a second. The first call in a second settles the bucket.
func (w *warmth) at(t *twin, p place) float64 {
	second := floorDiv(t.now, int64(time.Second))
	if !w.begun || second > w.second {
		w.settle(t, p, second)
	}
	if w.stored < w.warning || w.full == w.warning {
		return w.c
	}
	if w.low {
		return w.c / (1 + (w.f-1)*(w.stored-w.warning)/(w.full-w.warning))
	}
	slope := (w.f - 1) / w.c / (w.full - w.warning)
	rate := math.Nextafter(1/((w.stored-w.warning)*slope+1/w.c), math.Inf(1))
	return min(w.c, max(w.c/w.f, rate))
}

func (w *warmth) settle(t *twin, p place, second int64) {
	passed := float64(t.passedIn(p, second-1))
	if w.low {
		total := t.passedSoFar(p)
		if w.by == p {
			passed = float64(total - w.total)
		}
		w.by, w.total = p, total
	}
	gain := float64(second-w.second) * 1000 * w.c / 1000
	switch {
	case !w.begun:
		w.stored = max(0, w.full-passed)
	case w.low:
		if passed > 0 {
			w.lastPass = w.second
		}
		w.stored = max(0, w.stored-passed)
		most := w.full
		if w.lastPass != noPass && float64(second-w.lastPass)*w.c/w.f <= 1 {
			most = w.warning
		}
		if w.stored < most {
			w.stored = min(most, w.stored+gain)
		}
	default:
		if w.stored < w.warning || w.stored > w.warning && passed < float64(int64(w.c)/int64(w.f)) {
			w.stored = math.Floor(min(w.full, w.stored+gain))
		}
		w.stored = max(0, w.stored-passed)
	}
	w.share = 1 // what holds nothing can't be emptied
	if w.full > 0 {
		w.share = w.stored / w.full
	}
	w.begun, w.second = true, second
}

func (t *twin) passedSoFar(p place) (units int64) {
	for _, c := range t.calls {
		if c.passed() && c.on(p) {
			units += c.units
		}
	}
	return units
}

func (t *twin) passedIn(p place, second int64) (units int64) {
	for _, c := range t.calls {
		if c.passed() && floorDiv(c.at, int64(time.Second)) == second && c.on(p) {
			units += c.units
		}
	}
	return units
}
