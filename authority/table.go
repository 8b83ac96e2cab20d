package authority

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// table holds the compiled authority rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]
}

// Compile adds authority rules to the next revision of an engine's rules.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			return newController(r, record, at.Resource, old)
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
	}
	return family.Compile(b, core.KindAuthority, rules, maker, new(table))
}

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	return &checker{t.ByMode(controllers)}
}

// Names collects the names in the rules.
func (t *table) Names(names *engine.Names) {
	for _, r := range t.All() {
		if r.Mode != spec.Enforce || !r.Info().Named() {
			continue
		}
		names.Resource(r.Resource)
		for _, origin := range r.Origins {
			names.Origin(r.Resource, origin)
		}
	}
}
