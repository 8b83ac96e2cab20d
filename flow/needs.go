package flow

import (
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// findNeeds collects what the rules need on nodes where none of them is in effect yet.
func (t *table) findNeeds() {
	known := make(map[engine.Need]bool)
	for _, r := range t.All() {
		switch n := r.need(meter.Meter{Shape: r.shape()}); {
		case r.Mode == spec.Off:
		case r.Relation == Associated:
			t.looking = append(t.looking, r)
		case r.Match == spec.MatchRegex && !r.Together && r.Mode != spec.Shadow && r.counts() && !known[n]:
			known[n] = true
			t.perhaps = append(t.perhaps, n)
		}
	}
}

// Needs reports the meters that the rules at a resource count with. The semaphore of a rule that is
// off is kept if no other rule shares it: nothing else knows which calls are in flight.
func (t *table) Needs(held any, known uint64, need func(engine.Need)) {
	h, _ := held.(*family.Kept[Rule, controller])
	for c := range h.All() {
		_, own := ownerOf(c.meter)
		if c.rule.counts() && c.rule.Relation != Associated && (c.rule.Mode != spec.Off || own && c.rule.Metric == Concurrency) {
			need(c.rule.need(c.meter))
		}
	}
	if t.Pending(known) {
		for _, n := range t.perhaps {
			need(n)
		}
	}
}

// Looks reports the meters that associated rules read, or will read once in effect; an expression
// may select the calling resources.
func (t *table) Looks(need func(resource string, n engine.Need)) {
	if len(t.looking) == 0 {
		return
	}
	for _, r := range t.looking {
		if !r.Info().Named() {
			need(r.Ref, r.need(r.meterAfter(nil, r.Resource, 0)))
		}
	}
	t.Each(func(c *controller) {
		if c.rule.Relation == Associated && c.rule.Mode != spec.Off {
			need(c.rule.Ref, c.rule.need(c.meter))
		}
	})
}

// counts reports whether the rule counts with a meter of a node.
func (r Rule) counts() bool { return r.Metric == Concurrency && !r.leases() || r.metered() }

// need returns the rule's need for the meter.
func (r Rule) need(m meter.Meter) engine.Need {
	if r.Metric == Concurrency {
		return engine.Need{Role: r.role(), Semaphore: true, Meter: meter.Meter{Owner: m.Owner}}
	}
	return engine.Need{Role: r.role(), Meter: m}
}
