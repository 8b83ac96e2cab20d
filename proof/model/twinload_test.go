package model

import (
	"slices"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
)

// load replaces the rules. What those that hold name is there before any of them is at work.
func (t *twin) load(rules []flow.Rule) {
	t.revision++
	t.set = rules
	for _, r := range rules {
		if r.Mode != spec.Enforce {
			continue
		}
		t.places[cluster(r.Resource)] = true
		switch {
		case r.Relation == flow.Associated:
			t.places[cluster(r.Ref)] = true
		case r.Relation == flow.Direct && r.Origin != flow.OriginDefault && r.Origin != flow.OriginOther:
			t.places[place{"origin", r.Resource, r.Origin}] = true
		}
	}
	t.apply()
	t.trim()
}

// apply puts the rules to work at the resources that are there. One that stands as it was
// goes on as it is; a changed one takes over what the one of the same ID knew.
func (t *twin) apply() {
	before := t.rules
	find := func(id string) *limiter {
		i := slices.IndexFunc(before, func(l *limiter) bool { return l.rule.ID == id })
		if i < 0 {
			return nil
		}
		return before[i]
	}
	t.rules = nil
	tallies := make(map[string]*tally)
	for _, r := range t.set {
		if tallies[r.ID] = t.tallies[r.ID]; tallies[r.ID] == nil {
			tallies[r.ID] = new(tally)
		}
	}
	t.tallies = tallies
	var fresh []*limiter
	for _, r := range t.set {
		old := find(r.ID)
		switch {
		case old != nil && spec.Equal(old.rule, r):
			t.rules = append(t.rules, old)
		case old != nil && old.rule.Resource == r.Resource:
			t.rules = append(t.rules, t.newLimiter(r, old))
		case r.Mode != spec.Off && t.places[cluster(r.Resource)]:
			l := &limiter{rule: r}
			t.rules = append(t.rules, l)
			fresh = append(fresh, l)
		}
	}
	for _, l := range fresh { // after the changed ones
		*l = *t.newLimiter(l.rule, nil)
	}
}

func (t *twin) newLimiter(r flow.Rule, old *limiter) *limiter {
	l := &limiter{rule: r, tally: t.tallies[r.ID]}
	if (r.Behavior == flow.WarmUp || r.Behavior == flow.WarmUpThrottle) && r.Threshold > 0 {
		l.warm = newWarmth(r)
		if old != nil && old.warm != nil && old.warm.begun {
			l.warm.goOn(old.warm)
		}
	}
	if old != nil {
		l.queue, l.bucket = old.queue, old.bucket // also if it has no use for them, for when it has again
	}
	if l.queue == nil && l.queues() {
		l.queue = new(queue)
	}
	if l.bucket == nil && l.rule.Behavior == flow.TokenBucket {
		l.bucket = newBucket(r.Interval, r.Threshold)
	}
	t.takeOver(l, old)
	l.own, l.era = t.meterOf(l, old)
	if (l.meters() || r.Metric == flow.Concurrency) && r.Mode != spec.Off {
		t.open(l, old)
	}
	return l
}

// goesOnFrom reports whether the rule goes on in the meters of the one before: it counts the
// same calls, and both hold or both are shadow rules.
func (l *limiter) goesOnFrom(old *limiter) bool {
	return old != nil && old.rule.Mode != spec.Off && l.sameCalls(old) && l.shadow() == old.shadow()
}

// meterOf tells the meters of rules apart. A shadow rule that takes has its own, and keeps
// them as long as it counts the same calls; a rule that has come to another shape has windows
// of its own era.
func (t *twin) meterOf(l, old *limiter) (own owner, era node.Era) {
	goesOn := l.goesOnFrom(old)
	switch {
	case !l.shadow():
		own = everybody
	case l.role() == "ref":
		own = watchers
	case goesOn:
		own = old.own
	default:
		own = alone(l.rule.ID, t.revision)
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
	for _, p := range t.nodesOf(l) {
		if !t.places[p] {
			continue
		}
		if l.rule.Metric == flow.Concurrency {
			t.semaphoreOn(p, l.own)
			continue
		}
		if w := t.windowOn(p, l, t.heritage(p, l, old)); l.fixed() {
			l.window = w
		}
	}
}

// fixed reports whether the rule always counts on the same node. One in shadow mode doesn't
// see to it that there is one, other than its resource's.
func (l *limiter) fixed() bool {
	switch l.role() {
	case "cluster":
		return true
	case "ref":
		return !l.shadow()
	case "origin":
		return !l.shadow() && l.rule.Origin != flow.OriginOther
	}
	return false
}

// nodesOf are the nodes on which a rule counts; of those of other callers, which it doesn't
// name, the ones that have meters.
func (t *twin) nodesOf(l *limiter) (nodes []place) {
	resource := l.rule.Resource
	switch {
	case l.role() == "ref":
		return []place{cluster(l.rule.Ref)}
	case l.role() == "cluster":
		return []place{cluster(resource)}
	case l.role() == "call":
		return []place{{"call", resource, l.rule.Ref}}
	case l.rule.Origin != flow.OriginOther:
		return []place{{"origin", resource, l.rule.Origin}}
	}
	for p := range t.places {
		if p.kind == "origin" && p.resource == resource && t.metered(p, l) {
			nodes = append(nodes, p)
		}
	}
	return nodes
}

// metered reports whether a node has meters that a rule may know of: one that holds knows of
// those of others that do.
func (t *twin) metered(p place, l *limiter) bool {
	seen := func(on place, o owner) bool { return on == p && (l.shadow() || o == everybody) }
	return slices.ContainsFunc(t.windows, func(w *window) bool { return seen(w.on, w.owner) }) ||
		slices.ContainsFunc(t.semaphores, func(g *semaphore) bool { return seen(g.on, g.owner) })
}

// heritage is the window that a new one of a changed rule goes on from.
func (t *twin) heritage(p place, l, old *limiter) *window {
	switch {
	case old == nil, old.rule.Mode == spec.Off:
		return nil
	case old.rule.Mode == spec.Shadow && l.rule.Mode == spec.Enforce:
		return nil // a shadow rule doesn't know what really passed
	case !l.sameCalls(old):
		return nil // it counted other calls
	case old.window != nil:
		return old.window
	}
	w := t.findWindow(p, old.shape(), old.own, old.era)
	if w == nil && l.meters() && old.meters() && l.shape() != old.shape() && l.goesOnFrom(old) {
		// The rule before had taken nothing here. It gets a window, so that none of its calls
		// makes one while it is handed over; another rule may have it in common, and keeps it.
		w = t.windowOn(p, old, nil)
	}
	return w
}

// trim drops the meters that no rule names any more.
func (t *twin) trim() {
	named := func(p place, fits func(l *limiter) bool) bool {
		return slices.ContainsFunc(t.rules, func(l *limiter) bool {
			if l.rule.Mode == spec.Off {
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
	t.semaphores = slices.DeleteFunc(t.semaphores, func(g *semaphore) bool {
		return !named(g.on, func(l *limiter) bool { return l.rule.Metric == flow.Concurrency && l.own == g.owner })
	})
}
