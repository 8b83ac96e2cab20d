package upstream

import (
	"math/rand/v2"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shared"
)

// Info returns the rule's data for the rule table.
func (r Rule) Info() spec.Info {
	return spec.Info{ID: r.ID, Resource: r.Resource, Match: r.Match, Exclude: r.Exclude, Mode: r.Mode}
}

// table holds the compiled upstream rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]

	// pauses are those of the rules, by their records, which a changed rule takes over from the one
	// that it continues.
	pauses map[*engine.Record]*pauses
	seed   uint64
	seeds  shared.Uint64 // number of seeds made from seed
}

// Compile adds upstream rules to the next revision of an engine's rules. Unchanged rules keep running;
// a changed rule takes over the state of the rule with the same ID.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error { return compile(b, rules, rand.Uint64()) }

// compile is like Compile, but equal seeds draw equal random numbers.
func compile(b *engine.SnapshotBuilder, rules []Rule, seed uint64) error {
	old, _ := b.Previous(core.KindUpstream).(*table)
	t := &table{pauses: make(map[*engine.Record]*pauses), seed: seed}
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			c := newController(t, r, record, at, old)
			if old != nil {
				at.BeforeUse(c.adopt)
			}
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.pause },
		Idle:    (*controller).idle,
	}
	if err := family.Compile(b, core.KindUpstream, rules, maker, t); err != nil {
		return err
	}
	for i, r := range t.All() {
		record := t.Record(i)
		if r.Obey && old != nil {
			t.pauses[record] = old.pauses[record]
		}
		if t.pauses[record] == nil {
			t.pauses[record] = newPauses(t.nextSeed())
		}
	}
	if len(rules) > 0 {
		b.HearAnswers()
	}
	return nil
}

// nextSeed returns the seed of a rule's pauses or of a resource's throttle. Equal numbers are drawn if
// resources are used in the same order. Safe for concurrent use: rules are built for several resources
// at once.
func (t *table) nextSeed() uint64 { return t.seed + t.seeds.Add(1) }

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	return &checker{t.ByMode(controllers)}
}
