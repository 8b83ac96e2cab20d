package isolation

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// Info tells the rule table what it needs to know.
func (r Rule) Info() core.RuleInfo {
	return core.RuleInfo{ID: r.ID, Resource: r.Resource, Regex: r.Regex, Mode: r.Mode}
}

// WithID returns the rule with another ID.
func (r Rule) WithID(id string) Rule {
	r.ID = id
	return r
}

// Like names what makes the rule that rule, whatever its ID.
func (r Rule) Like() string { return r.madeID() }

// Equal reports whether two rules are the same in every field.
func (r Rule) Equal(other Rule) bool { return r == other }

// Table is the compiled isolation rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]

	revision uint64
}

// Normalize returns the rules with their defaults written out and IDs that differ, or
// the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindIsolation, rules, Rule.Normalized)
}

// Compile makes isolation rules part of the next revision of an engine's rules. Who is
// in flight or in line stays there, whatever becomes of the rules: a higher limit lets
// the first in line run at once, and where no rule is left, all do.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	t := &Table{revision: b.Revision()}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindIsolation, rules, newController, (*controller).acts); err != nil {
		return err
	}
	old, _ := b.Previous(core.KindIsolation).(*Table)
	if old != nil {
		t.Inherit(old.Table, b.Engine.FindResource)
	}
	b.Put(core.KindIsolation, t)
	if old != nil && len(old.Rules()) > 0 {
		b.BeforePublishing(func(int64) { b.Engine.EachResource(t.limit) })
	}
	return nil
}

// limit tells those in line at a resource what the limit is now. Calls that come tell
// it too (see [stat.Claim]); but there may come none.
func (t *Table) limit(r *core.Resource) {
	g := r.Gauge(everybody)
	if g == nil {
		return
	}
	limit := int64(stat.Open)
	if rs, ok := t.Bind(r, r.Name()).(*Rules); ok && rs.tightest != nil {
		limit = int64(rs.tightest.rule.Threshold)
	}
	g.SetLimit(t.revision, limit)
}

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	rs := &Rules{revision: t.revision, controllers: controllers}
	for _, c := range controllers {
		switch {
		case c.rule.Mode == core.Shadow:
			rs.shadows = append(rs.shadows, c)
		case c.owner != everybody:
			rs.apart = append(rs.apart, c)
		case rs.tightest == nil || c.rule.tighter(rs.tightest.rule) < 0:
			rs.tightest = c
		}
	}
	return rs
}

// KeepsGauge reports whether a rule counts with this gauge, or did and is off: of one that
// a rule has to itself nobody else could tell later who is in flight.
func (t *Table) KeepsGauge(resource string, role core.Role, owner any) bool {
	counts := func(c *controller) bool { return c.owner == owner }
	return role == core.RoleCluster && (slices.ContainsFunc(t.Made(resource), counts) ||
		owner != everybody && slices.ContainsFunc(t.Resting(resource), counts))
}

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}
