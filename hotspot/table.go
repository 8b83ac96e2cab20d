package hotspot

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
)

// table holds the compiled hotspot rules of one revision. It implements engine.Family.
type table struct {
	family.Compiled[Rule, controller]
}

// Compile adds hotspot rules to the next revision of an engine's rules. Unchanged rules keep
// running; a changed rule takes over the values of the rule with the same ID, unless it limits
// another argument.
func Compile(b *engine.SnapshotBuilder, rules []Rule) error {
	t := new(table)
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *engine.Record, at *engine.Binding, old *controller) *controller {
			c, publish := newController(t, r, record, at.Resource, old)
			at.BeforeUse(publish)
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	if err := family.Compile(b, core.KindHotspot, rules, maker, t); err != nil {
		return err
	}
	var units family.Units
	for i, r := range t.All() {
		if err := units.Add("hotspot", i, r.Unit); err != nil {
			return err
		}
	}
	return nil
}

// Bind returns the rules of a resource, or nil.
func (t *table) Bind(at *engine.Binding) engine.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	rs := new(checker)
	rs.Rules = t.ByMode(controllers)
	rs.sharing = rs.TakeOut(func(c *controller) bool { return c.member != nil })
	for _, c := range rs.sharing {
		rs.shared = append(rs.shared, c)
	}
	for _, c := range controllers {
		if c.notifier != nil {
			rs.Notices = append(rs.Notices, c)
		}
	}
	if len(rs.Holding) == 1 && rs.Holding[0].plain() {
		rs.plain = rs.Holding[0]
	}
	rs.costs = newCosts(rs)
	return rs
}

// Shares returns the rules whose limits a cluster shares, or nil if there are none.
func (rs *checker) Shares() engine.Sharer { return rs.shared.Sharer() }
