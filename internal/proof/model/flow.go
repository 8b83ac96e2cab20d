package model

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/stat"
)

// limiter is a flow rule in effect on a resource, or a counting system rule.
type limiter struct {
	kind     core.Kind
	resource string // "" for a system rule
	rule     flow.Rule
	window   *window // of a rule that always counts on the same node
	era      meter.Era
	own      owner // of its meters
	warm     *warmth
	queue    *queue  // of the rule, or of its previous behavior
	bucket   *bucket // the same
	*Figures         // of the rule, across resources

	model *Model
}

// by returns the rule as a cause of refusals and waits.
func (l *limiter) by() *By {
	return &By{Kind: l.kind, ID: l.rule.ID, Figures: l.Figures, again: l.again}
}

// again returns the time after which a call of one unit may retry.
func (l *limiter) again(c *Call) (wait time.Duration, known, looked bool) {
	switch {
	case l.rule.Threshold == 0:
	case l.rule.Behavior == flow.Throttle:
		one := *c
		one.Units = 1
		_, wait := l.queue.next(l.model.now, l.model.costOf(l, &one), false)
		return max(0, wait-l.rule.MaxWait), true, true
	case l.rule.Behavior == flow.TokenBucket:
		return l.bucket.retryAfter(l.model.now, l.size()), c.Units <= l.size(), true
	}
	return 0, false, false
}

func (l *limiter) queues() bool {
	return l.rule.Behavior == flow.Throttle || l.rule.Behavior == flow.WarmUpThrottle
}

func (l *limiter) meters() bool {
	return l.rule.Metric == flow.QPS && !l.queues() && l.rule.Behavior != flow.TokenBucket
}

// shape returns the shape of the rule's window, or the zero value if it has none.
func (l *limiter) shape() stat.Shape {
	if !l.meters() {
		return stat.Shape{}
	}
	return stat.Shape{Interval: l.rule.Interval, Buckets: l.rule.Buckets, Strict: l.rule.Window == flow.Strict}
}

// shadow reports whether the rule is in shadow mode. Its meters are separate from those of enforced
// rules, and it creates no node.
func (l *limiter) shadow() bool { return l.rule.Mode == spec.Shadow }

// owner identifies the owner of a meter, in the engine's notation.
type owner string

const (
	everybody owner = ""          // enforced rules share it
	watchers  owner = "{<nil>}"   // shared by shadow rules that only look
	permits   owner = "isolation" // shared by isolation rules
)

// alone is the owner of a shadow rule's separate meters, since a revision.
func alone(rule string, revision uint64) owner {
	return owner(fmt.Sprintf("{%s, revision %d}", rule, revision))
}

// all reports whether every call counts in the meter, rather than those one rule would admit.
func (o owner) all() bool { return o == everybody || o == watchers || o == permits }

func (l *limiter) role() string {
	switch {
	case l.kind == core.KindSystem:
		return "inbound"
	case l.rule.Relation == flow.Associated:
		return "ref"
	case l.rule.Relation == flow.Chain:
		return "call"
	case l.rule.Origin == flow.OriginDefault:
		return "cluster"
	}
	return "origin"
}

// breadth orders rules: rules that only look first, then the narrow ones.
func (l *limiter) breadth() int {
	return slices.Index([]string{"ref", "call", "origin", "cluster"}, strings.Replace(l.role(), "origin", "call", 1))
}

// abundance returns the limit in units per second, or in concurrent units.
func (l *limiter) abundance() float64 {
	if l.rule.Metric == flow.Concurrency {
		return l.rule.Threshold
	}
	return l.rule.Threshold / l.rule.Interval.Seconds()
}

// where returns the node on which the rule counts a call.
func (l *limiter) where(c *Call) place {
	switch l.role() {
	case "inbound":
		return inboundRoot
	case "ref":
		return cluster(l.rule.Ref)
	case "call":
		return place{"call", c.Resource, c.Context}
	case "origin":
		return place{"origin", c.Resource, c.Origin}
	}
	return cluster(c.Resource)
}

func (m *Model) windowOf(l *limiter, c *Call) *window {
	if l.window != nil {
		l.window.see(m.now)
		return l.window
	}
	return m.windowOn(l.where(c), l, nil)
}

// limitOf returns the units that may pass in an interval.
func (m *Model) limitOf(l *limiter, c *Call) int64 {
	threshold := l.rule.Threshold
	if l.warm == nil {
		return int64(threshold)
	}
	rate := l.warm.at(m, l.where(c))
	if rate >= l.warm.c {
		return int64(threshold)
	}
	least := max(threshold/float64(l.rule.ColdFactor), min(threshold, 1))
	return int64(min(threshold, max(least, rate*l.rule.Interval.Seconds())))
}

// costOf returns the time that a call occupies in the queue.
func (m *Model) costOf(l *limiter, c *Call) *big.Int {
	perUnit := float64(l.rule.Interval) / l.rule.Threshold
	if l.warm != nil {
		perUnit = 1e9 / l.warm.at(m, l.where(c))
	}
	cost, _ := new(big.Float).SetMantExp(big.NewFloat(float64(c.Units)*perUnit), 32).Int(nil)
	return cost
}

func (l *limiter) borrows(c *Call) bool {
	return c.Prioritized && l.rule.Behavior == flow.Reject && l.kind == core.KindFlow
}

// fits reports whether a rule would admit the call when asked, and after what wait. A rule that
// only looks decides for the present.
func (m *Model) fits(l *limiter, c *Call) (wait time.Duration, ok bool) {
	switch {
	case l.rule.Threshold == 0:
		return 0, false
	case l.queues():
		_, wait := l.queue.next(m.now, m.costOf(l, c), c.Prioritized)
		return wait, wait <= l.rule.MaxWait
	case l.rule.Behavior == flow.TokenBucket:
		return 0, l.bucket.fits(m.now, c.Units, l.size())
	case l.rule.Metric == flow.Concurrency:
		return 0, m.semaphoreOn(l.where(c), l.own).inUse()+c.Units <= int64(l.rule.Threshold)
	}
	w, limit := m.windowOf(l, c), m.limitOf(l, c)
	if l.role() == "ref" {
		ok = w.sum(w.head())+c.Units <= limit
	} else {
		ok = w.fits(w.head(), c.Units, limit)
	}
	if ok || !l.borrows(c) {
		return 0, ok
	}
	_, wait, ok = w.borrow(m.now, c.Units, limit, m.config.Occupy)
	return wait, ok
}

// takeOf returns a rule's decision after taking.
func (m *Model) takeOf(l *limiter, c *Call) verdict {
	no := verdict{refused: l.by()}
	switch {
	case l.rule.Threshold == 0:
		return no
	case l.queues():
		wait, ok := m.takeTurn(l.queue, c, m.costOf(l, c), l.rule.MaxWait, !l.shadow())
		if !ok {
			return no
		}
		return verdict{wait: wait, by: l.by()}
	case l.rule.Behavior == flow.TokenBucket:
		if !l.bucket.fits(m.now, c.Units, l.size()) {
			return no
		}
		l.bucket.take(c, m.now, c.Units)
		return verdict{}
	case l.rule.Metric == flow.Concurrency:
		g := m.semaphoreOn(l.where(c), l.own)
		units := c.Units
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

	w, limit := m.windowOf(l, c), m.limitOf(l, c)
	held := w.of(c)
	switch {
	case l.role() == "ref":
		if w.sum(w.head())+c.Units <= limit {
			return verdict{}
		}
		held = nil
	case held == nil:
		if w.fits(w.head(), c.Units, limit) {
			w.add(&charge{c, w.head(), c.Units, limit})
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
	bucket, wait, ok := w.borrow(m.now, c.Units, limit, m.config.Occupy)
	switch {
	case !ok && held != nil:
		w.add(held)
	case ok && l.role() != "ref":
		w.add(&charge{c, bucket, c.Units, limit})
	}
	if !ok {
		return no
	}
	return verdict{wait: wait, by: l.by(), borrowed: true}
}

// warmth is the token bucket of a warm-up: c is the rate in units per second, f the cold factor.
type warmth struct {
	c, f    float64
	low     bool // warning and full are less than a token apart
	warning float64
	full    float64
	stored  float64
	share   float64 // of full, when it was settled, by this rule or the previous one
	second  int64
	begun   bool

	// If low: the place that settled it, how many units had passed there, and the second of
	// the last one, if any.
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

// goOn takes over the warmth of the previous rule.
func (w *warmth) goOn(old *warmth) {
	w.share, w.second, w.begun = old.share, old.second, true
	w.by, w.total, w.lastPass = old.by, old.total, old.lastPass
	w.stored = w.share * w.full
	if !w.low {
		w.stored = math.Round(w.stored)
	}
}

// at returns the rate in units per second. The first call in a second settles the bucket.
func (w *warmth) at(m *Model, p place) float64 {
	second := floorDiv(m.now, int64(time.Second))
	if !w.begun || second > w.second {
		w.settle(m, p, second)
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

func (w *warmth) settle(m *Model, p place, second int64) {
	passed := float64(m.passedIn(p, second-1))
	if w.low {
		total := m.passedSoFar(p)
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
	w.share = 1 // a bucket that holds nothing can't be emptied
	if w.full > 0 {
		w.share = w.stored / w.full
	}
	w.begun, w.second = true, second
}

func (m *Model) passedSoFar(p place) (units int64) {
	for _, c := range m.calls {
		if c.passed() && c.on(p) {
			units += c.Units
		}
	}
	return units
}

func (m *Model) passedIn(p place, second int64) (units int64) {
	for _, c := range m.calls {
		if c.passed() && floorDiv(c.at, int64(time.Second)) == second && c.on(p) {
			units += c.Units
		}
	}
	return units
}

// of returns the flow rules of a resource that are not off, in order.
func (m *Model) of(resource string) (rules []*limiter) {
	for _, l := range m.rules {
		if l.kind == core.KindFlow && l.resource == resource && l.rule.Mode != spec.Off {
			rules = append(rules, l)
		}
	}
	return rules
}

// applies reports whether a rule applies to a call.
func (m *Model) applies(l *limiter, c *Call) bool {
	switch l.rule.Origin {
	case flow.OriginDefault:
	case flow.OriginOther:
		if c.Origin == "" {
			return false
		}
		for _, other := range m.of(c.Resource) {
			named := other.rule.Origin == c.Origin && c.Origin != flow.OriginDefault && c.Origin != flow.OriginOther
			if named && (l.rule.Mode == spec.Shadow || other.rule.Mode == spec.Enforce) {
				return false
			}
		}
	default:
		if c.Origin != l.rule.Origin {
			return false
		}
	}
	switch l.rule.Relation {
	case flow.Associated:
		return l.rule.Threshold == 0 || m.entered[l.rule.Ref]
	case flow.Chain:
		return c.Context == l.rule.Ref
	}
	return true
}
