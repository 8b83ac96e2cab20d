package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
)

// load replaces the rules. One that stands as it was goes on as it is; a changed one
// takes over what the one of the same ID knew.
func (t *twin) load(rules []flow.Rule) {
	t.revision++
	before := t.rules
	find := func(id string) *limiter {
		i := slices.IndexFunc(before, func(l *limiter) bool { return l.rule.ID == id })
		if i < 0 {
			return nil
		}
		return before[i]
	}
	t.rules = nil
	var fresh []*limiter
	for _, r := range rules {
		old := find(r.ID)
		switch {
		case old != nil && old.rule == r:
			t.rules = append(t.rules, old)
		case old != nil && old.rule.Resource == r.Resource:
			t.rules = append(t.rules, t.newLimiter(r, old))
		case r.Mode != core.Off:
			l := &limiter{rule: r}
			t.rules = append(t.rules, l)
			fresh = append(fresh, l)
		}
	}
	for _, l := range fresh { // after the changed ones
		*l = *t.newLimiter(l.rule, nil)
	}
	t.trim()
}

func (t *twin) newLimiter(r flow.Rule, old *limiter) *limiter {
	l := &limiter{rule: r, tally: new(tally)}
	if old != nil {
		l.tally = old.tally
	}
	if (r.Behavior == flow.WarmUp || r.Behavior == flow.WarmUpThrottle) && r.Threshold > 0 {
		l.warm = newWarmth(r)
		if old != nil && old.warm != nil && old.warm.begun {
			l.warm.share, l.warm.second, l.warm.begun = old.warm.share, old.warm.second, true
			l.warm.stored = int64(math.Round(l.warm.share * float64(l.warm.full)))
		}
	}
	if old != nil {
		l.queue = old.queue // also if it does not queue, for when it does again
	}
	if l.queue == nil && l.queues() {
		l.queue = new(queue)
	}
	l.own, l.era = t.meterOf(l, old)
	if !l.queues() && r.Mode != core.Off {
		t.open(l, old)
	}
	return l
}

// meterOf tells the meters of rules apart. A rule that has its own keeps them as long as
// it counts the same calls; one that has come to another shape has windows of its own era.
func (t *twin) meterOf(l, old *limiter) (own string, era node.Era) {
	goesOn := old != nil && old.rule.Mode != core.Off && l.sameCalls(old) && l.apart() == old.apart()
	switch {
	case !l.apart():
	case goesOn:
		own = old.own
	default:
		own = fmt.Sprintf("%s, revision %d", l.rule.ID, t.revision)
	}
	switch {
	case !goesOn || !old.meters() || !l.meters():
	case old.shape() == l.shape():
		era = old.era
	default:
		era = node.Era{Rule: l.rule.ID, Revision: t.revision}
	}
	return own, era
}

func (l *limiter) sameCalls(old *limiter) bool {
	return l.rule.Relation == old.rule.Relation && l.rule.Ref == old.rule.Ref && l.rule.Origin == old.rule.Origin
}

// open makes the meters on the nodes that are there.
func (t *twin) open(l, old *limiter) {
	at := func(p place) *window {
		if l.rule.Metric == flow.Concurrency {
			t.gaugeOn(p, l.own)
			return nil
		}
		return t.windowOn(p, l, t.heritage(p, l, old))
	}
	resource := l.rule.Resource
	switch {
	case l.role() == "ref":
		l.window = at(cluster(l.rule.Ref))
	case l.role() == "cluster":
		l.window = at(cluster(resource))
	case l.role() == "call":
		if p := (place{"call", resource, l.rule.Ref}); t.places[p] {
			at(p)
		}
	case l.rule.Origin != flow.OriginOther:
		p := place{"origin", resource, l.rule.Origin}
		t.places[p] = true
		l.window = at(p)
	default:
		var metered []place
		for p := range t.places {
			if p.kind == "origin" && p.resource == resource && t.metered(p) {
				metered = append(metered, p)
			}
		}
		for _, p := range metered {
			at(p)
		}
	}
}

func (t *twin) metered(p place) bool {
	return slices.ContainsFunc(t.windows, func(w *window) bool { return w.on == p }) ||
		slices.ContainsFunc(t.gauges, func(g *gauge) bool { return g.on == p })
}

// heritage is the window that a new one of a changed rule goes on from.
func (t *twin) heritage(p place, l, old *limiter) *window {
	switch {
	case old == nil, old.rule.Mode == core.Off:
		return nil
	case old.rule.Mode == core.Shadow && l.rule.Mode == core.Enforce:
		return nil // a rehearsal doesn't know what really passed
	case !l.sameCalls(old):
		return nil // it counted other calls
	case old.window != nil:
		return old.window
	}
	w := t.findWindow(p, old.shape(), old.own, old.era)
	if w == nil && l.meters() && old.meters() && l.shape() != old.shape() && l.apart() == old.apart() {
		// The rule before had taken nothing here. It gets a window, so that none of its calls
		// makes one while it is handed over.
		w = &window{on: p, shape: old.shape(), newest: t.now}
		t.seed(w)
	}
	return w
}

// trim drops the meters that no rule names any more.
func (t *twin) trim() {
	named := func(p place, fits func(l *limiter) bool) bool {
		return slices.ContainsFunc(t.rules, func(l *limiter) bool {
			if l.rule.Mode == core.Off {
				return false
			}
			if l.role() == "ref" {
				return p == cluster(l.rule.Ref) && fits(l)
			}
			return p.resource == l.rule.Resource && p.kind == l.role() && fits(l)
		})
	}
	t.windows = slices.DeleteFunc(t.windows, func(w *window) bool {
		return !named(w.on, func(l *limiter) bool {
			return l.meters() && l.shape() == w.shape && l.own == w.owner && l.era == w.era
		})
	})
	t.gauges = slices.DeleteFunc(t.gauges, func(g *gauge) bool {
		return !named(g.on, func(l *limiter) bool { return l.rule.Metric == flow.Concurrency && l.own == g.owner })
	})
}
