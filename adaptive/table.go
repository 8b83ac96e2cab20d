package adaptive

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode, Refusal: r.Refusal}
}

// table holds the compiled adaptive rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]

	limits shared.Uint64 // created by the table
}

// nextID returns the identity of a new limit. Safe for concurrent use: rules are built for several
// resources at once.
func (t *table) nextID() limitID { return limitID{t.Revision, t.limits.Add(1)} }

// Compile adds adaptive rules to the next revision of an engine's rules. Unchanged rules keep
// running; a changed rule continues from the limit that the rule with the same ID has learned.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	t := new(table)
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			c := t.newController(r, record, at.Resource, old)
			at.BeforeUse(c.begin)
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
	}
	return family.Compile(b, core.KindAdaptive, rules, maker, t)
}

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	rs := checker{t.ByMode(controllers)}
	if slices.ContainsFunc(rs.Holding, func(c *controller) bool { return c.judge != nil }) {
		return &shedding{rs}
	}
	return &rs
}

// Needs reports the semaphores that the rules at a resource count with. A rule's own semaphore is
// kept while the rule is off, since nothing else knows which calls are in flight.
func (t *table) Needs(held any, _ uint64, need func(engine.Need)) {
	h, _ := held.(*family.Kept[Rule, controller])
	for c := range h.All() {
		for _, owner := range []any{c.owner, c.shadowOwner} {
			if _, shared := owner.(meter.Shared); c.counts(owner) || c.rule.Mode == spec.Off && !shared {
				need(engine.Need{Role: engine.RoleCluster, Semaphore: true, Meter: meter.Meter{Owner: owner}})
			}
		}
	}
}
