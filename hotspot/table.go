package hotspot

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/family"
	"github.com/penstock-go/penstock/core/spec"
)

// Table is the compiled hotspot rules of one revision. It implements core.Family.
type Table struct {
	family.Compiled[Rule, controller]
}

// Compile makes hotspot rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the values of the
// rule with the same ID, unless they look at another argument.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	t := new(Table)
	maker := family.Maker[Rule, controller]{
		Normalized: Rule.Normalized,
		Build: func(r Rule, record *core.Record, at *core.Site, old *controller) *controller {
			c, publish := newController(t, r, record, at.Resource, old)
			at.BeforeUse(publish)
			return c
		},
		Rule:    func(c *controller) *Rule { return &c.rule },
		Refusal: func(c *controller) *core.BlockError { return c.refusal },
		Idle:    (*controller).idle,
	}
	return family.Compile(b, core.KindHotspot, rules, maker, t)
}

// Bind returns the rules of a resource or nil.
func (t *Table) Bind(at *core.Site) core.Checker {
	controllers := t.Hold(at)
	if len(controllers) == 0 {
		return nil
	}
	rs := new(Rules)
	rs.controllers, rs.shadows = family.ByMode(controllers, func(c *controller) spec.Mode { return c.rule.Mode })
	rs.controllers, rs.sharing = split(rs.controllers)
	for _, c := range rs.sharing {
		rs.shared = append(rs.shared, c)
	}
	if len(rs.controllers) == 1 && rs.controllers[0].plain() {
		rs.plain = rs.controllers[0]
	}
	return rs
}

// split takes out those whose limits a cluster shares.
func split(all []*controller) (own, sharing []*controller) {
	for _, c := range all {
		if c.member != nil {
			sharing = append(sharing, c)
		} else {
			own = append(own, c)
		}
	}
	return own, sharing
}

// Shares are the rules whose limits a cluster shares, nil if there are none.
func (rs *Rules) Shares() core.Sharer { return rs.shared.Sharer() }
