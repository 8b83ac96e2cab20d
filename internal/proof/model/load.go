package model

import (
	"regexp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// Load replaces the rules with normalized ones. Everything that enforced rules name exists before
// any of them takes effect.
func (m *Model) Load(set rules.Set) {
	m.revision++
	m.set = set
	for _, r := range set.Flow {
		if r.Mode != spec.Enforce {
			continue
		}
		if r.Relation == flow.Associated {
			m.places[cluster(r.Ref)] = true
		}
		if r.Match == spec.MatchExact && r.Relation == flow.Direct && r.Origin != flow.OriginDefault && r.Origin != flow.OriginOther {
			m.places[place{"origin", r.Resource, r.Origin}] = true
		}
	}
	for _, r := range set.Authority {
		if r.Mode == spec.Enforce && r.Match == spec.MatchExact {
			for _, origin := range r.Origins {
				m.places[place{"origin", r.Resource, origin}] = true
			}
		}
	}
	tallies := make(map[ruleKey]*Figures)
	named(m, tallies, core.KindAuthority, set.Authority)
	named(m, tallies, core.KindSystem, set.System)
	named(m, tallies, core.KindHotspot, set.Hotspot)
	named(m, tallies, core.KindFlow, set.Flow)
	named(m, tallies, core.KindIsolation, set.Isolation)
	named(m, tallies, core.KindBreaker, set.Breaker)
	m.tallies = tallies
	m.apply()
	m.setLimits()
	m.trim()
	m.remember()
}

// named carries over the stats of rules, and creates the resources that enforced rules name.
func named[R spec.Rule](m *Model, tallies map[ruleKey]*Figures, kind core.Kind, rules []R) {
	for _, r := range rules {
		info := r.Info()
		key := ruleKey{kind, info.ID}
		if tallies[key] = m.tallies[key]; tallies[key] == nil {
			tallies[key] = new(Figures)
		}
		if info.Mode == spec.Enforce && info.Named() && info.Resource != "" {
			m.places[cluster(info.Resource)] = true
		}
	}
}

// about returns the rules for a resource, in their order. A rule for all resources yields to rules
// for this one.
func about[R spec.Rule](m *Model, rules []R, resource string) (all []R) {
	own := slices.ContainsFunc(rules, func(r R) bool {
		info := r.Info()
		return info.Mode == spec.Enforce && info.Resource != spec.AnyResource && m.covers(info, resource)
	})
	for _, r := range rules {
		if info := r.Info(); m.covers(info, resource) && (info.Resource != spec.AnyResource || !own) {
			all = append(all, r)
		}
	}
	return all
}

func (m *Model) covers(info spec.Info, resource string) bool {
	switch {
	case info.Resource == spec.AnyResource && info.Match != spec.MatchRegex:
		return !slices.Contains(info.Exclude, resource)
	case info.Match == spec.MatchRegex:
		p := m.patterns[info.Resource]
		if p == nil {
			p = regexp.MustCompile("^(?s:" + info.Resource + ")$")
			m.patterns[info.Resource] = p
		}
		return p.MatchString(resource)
	}
	return info.Resource == resource
}

// resources returns the existing names, in order.
func (m *Model) resources() (names []string) {
	for p := range m.places {
		if p.kind == "cluster" && p.resource != node.OverflowName {
			names = append(names, p.resource)
		}
	}
	slices.Sort(names)
	return names
}

// apply puts the rules into effect at the existing resources. An unchanged rule continues; a
// changed one takes over the state of the rule with the same ID.
func (m *Model) apply() {
	before := m.rules
	m.rules = nil
	var fresh []*limiter
	put := func(kind core.Kind, resource string, r flow.Rule) {
		i := slices.IndexFunc(before, func(l *limiter) bool { return l.kind == kind && l.rule.ID == r.ID && l.resource == resource })
		switch {
		case i >= 0 && spec.Equal(before[i].rule, r):
			m.rules = append(m.rules, before[i])
		case i >= 0:
			m.rules = append(m.rules, m.newLimiter(kind, resource, r, before[i]))
		case r.Mode != spec.Off:
			l := &limiter{kind: kind, resource: resource, rule: r}
			m.rules = append(m.rules, l)
			fresh = append(fresh, l)
		}
	}
	for _, r := range m.set.System {
		if f, counts := counting(r); counts {
			put(core.KindSystem, "", f)
		}
	}
	names := m.resources()
	for _, r := range m.set.Flow {
		for _, name := range names {
			if slices.ContainsFunc(about(m, m.set.Flow, name), func(o flow.Rule) bool { return o.ID == r.ID }) {
				put(core.KindFlow, name, r)
			}
		}
	}
	for _, l := range fresh { // after the changed ones
		*l = *m.newLimiter(l.kind, l.resource, l.rule, nil)
	}
	m.applySystem()
	m.applyHotspot(names)
	m.applyIsolation(names)
	m.applyBreakers(names)
}

func (m *Model) newLimiter(kind core.Kind, resource string, r flow.Rule, old *limiter) *limiter {
	l := &limiter{kind: kind, resource: resource, rule: r, Figures: m.tallies[ruleKey{kind, r.ID}], model: m}
	if (r.Behavior == flow.WarmUp || r.Behavior == flow.WarmUpThrottle) && r.Threshold > 0 {
		l.warm = newWarmth(r)
		if old != nil && old.warm != nil && old.warm.begun {
			l.warm.goOn(old.warm)
		}
	}
	if old != nil {
		l.queue, l.bucket = old.queue, old.bucket // even if unused now, for later changes
	}
	if l.queue == nil && l.queues() {
		l.queue = new(queue)
	}
	if l.bucket == nil && l.rule.Behavior == flow.TokenBucket {
		l.bucket = newBucket(r.Interval, r.Threshold)
	}
	m.takeOver(l, old)
	l.own, l.era = m.meterOf(l, old)
	if (l.meters() || r.Metric == flow.Concurrency) && r.Mode != spec.Off {
		m.open(l, old)
	}
	return l
}

// goesOnFrom reports whether the rule continues with the meters of the previous one: it counts the
// same calls, and both are enforced or both are shadow rules.
func (l *limiter) goesOnFrom(old *limiter) bool {
	return old != nil && old.rule.Mode != spec.Off && l.sameCalls(old) && l.shadow() == old.shadow()
}

// meterOf distinguishes the meters of rules. A shadow rule that takes has its own, and keeps them
// as long as it counts the same calls; a rule whose shape changed gets windows of a new era.
func (m *Model) meterOf(l, old *limiter) (own owner, era meter.Era) {
	goesOn := l.goesOnFrom(old)
	switch {
	case !l.shadow():
		own = everybody
	case l.kind == core.KindSystem:
		own = owner(l.rule.ID)
	case l.role() == "ref":
		own = watchers
	case goesOn:
		own = old.own
	default:
		own = alone(l.rule.ID, m.revision)
	}
	switch {
	case !goesOn || !old.meters() || !l.meters():
	case old.shape() == l.shape():
		era = old.era
	default:
		era = meter.Era{Rule: l.rule.ID, Revision: m.revision}
	}
	return own, era
}

func (l *limiter) sameCalls(old *limiter) bool {
	return l.rule.Relation == old.rule.Relation && l.rule.Ref == old.rule.Ref && l.rule.Origin == old.rule.Origin
}

// open creates the meters on the existing nodes.
func (m *Model) open(l, old *limiter) {
	for _, p := range m.nodesOf(l) {
		if !m.places[p] {
			continue
		}
		if l.rule.Metric == flow.Concurrency {
			m.semaphoreOn(p, l.own)
			continue
		}
		if w := m.windowOn(p, l, m.heritage(p, l, old)); l.fixed() {
			l.window = w
		}
	}
}

// fixed reports whether the rule always counts on the same node. A shadow rule creates no node
// other than its resource's.
func (l *limiter) fixed() bool {
	switch l.role() {
	case "cluster", "inbound":
		return true
	case "ref":
		return !l.shadow()
	case "origin":
		return !l.shadow() && l.rule.Origin != flow.OriginOther
	}
	return false
}

// nodesOf returns the nodes that a rule counts on. For a rule about other callers, whose names it
// doesn't list, these are the callers' nodes with meters.
func (m *Model) nodesOf(l *limiter) (nodes []place) {
	resource := l.resource
	switch {
	case l.role() == "inbound":
		return []place{inboundRoot}
	case l.role() == "ref":
		return []place{cluster(l.rule.Ref)}
	case l.role() == "cluster":
		return []place{cluster(resource)}
	case l.role() == "call":
		return []place{{"call", resource, l.rule.Ref}}
	case l.rule.Origin != flow.OriginOther:
		return []place{{"origin", resource, l.rule.Origin}}
	}
	for p := range m.places {
		if p.kind == "origin" && p.resource == resource && m.metered(p, l) {
			nodes = append(nodes, p)
		}
	}
	return nodes
}

// metered reports whether a node has meters that a rule may use: an enforced rule shares meters
// with other enforced rules.
func (m *Model) metered(p place, l *limiter) bool {
	seen := func(on place, o owner) bool { return on == p && (l.shadow() || o == everybody) }
	return slices.ContainsFunc(m.windows, func(w *window) bool { return seen(w.on, w.owner) }) ||
		slices.ContainsFunc(m.semaphores, func(g *semaphore) bool { return seen(g.on, g.owner) })
}

// heritage returns the old window that the new window of a changed rule continues from.
func (m *Model) heritage(p place, l, old *limiter) *window {
	switch {
	case old == nil, old.rule.Mode == spec.Off:
		return nil
	case old.rule.Mode == spec.Shadow && l.rule.Mode == spec.Enforce:
		return nil // a shadow rule doesn't know the real traffic
	case !l.sameCalls(old):
		return nil // the old rule counted other calls
	case old.window != nil:
		return old.window
	}
	w := m.findWindow(p, old.shape(), old.own, old.era)
	if w == nil && l.meters() && old.meters() && l.shape() != old.shape() && l.goesOnFrom(old) {
		// The previous rule had taken nothing here. It gets a window so that none of its calls
		// creates one during the handover; another rule that shares the window keeps it.
		w = m.windowOn(p, old, nil)
	}
	return w
}

// trim drops meters that no rule names.
func (m *Model) trim() {
	named := func(p place, fits func(l *limiter) bool) bool {
		return slices.ContainsFunc(m.rules, func(l *limiter) bool {
			if l.rule.Mode == spec.Off {
				return false
			}
			switch l.role() {
			case "inbound":
				return p == inboundRoot && fits(l)
			case "ref":
				return p == cluster(l.rule.Ref) && fits(l)
			}
			return p.resource == l.resource && p.kind == l.role() && fits(l)
		})
	}
	m.windows = slices.DeleteFunc(m.windows, func(w *window) bool {
		return !named(w.on, func(l *limiter) bool {
			return l.meters() && l.shape() == w.shape && l.own == w.owner && l.era == w.era
		})
	})
	m.semaphores = slices.DeleteFunc(m.semaphores, func(g *semaphore) bool {
		if g.owner == permits || g.rehearsed {
			return !m.limited(g)
		}
		return !named(g.on, func(l *limiter) bool { return l.rule.Metric == flow.Concurrency && l.own == g.owner })
	})
}
