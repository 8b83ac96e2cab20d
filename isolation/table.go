package isolation

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
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
	table    *core.Table[Rule, controller]
	revision uint64
}

// Normalize returns the rules with their defaults written out and IDs that differ, or
// the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	if len(rules) == 0 {
		return nil, nil // no rules have one form
	}
	normalized := make([]Rule, len(rules))
	for i, r := range rules {
		n, err := r.Normalized()
		if err != nil {
			return nil, fmt.Errorf("isolation[%d].%w", i, err)
		}
		normalized[i] = n
	}
	unique, err := core.UniqueIDs(rules, normalized)
	if err != nil {
		return nil, fmt.Errorf("isolation: %w", err)
	}
	return unique, nil
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
	if t.table, err = core.NewTable(rules, newController); err != nil {
		return fmt.Errorf("isolation: %w", err)
	}
	old, _ := b.Previous(core.KindIsolation).(*Table)
	if old != nil {
		t.table.Inherit(old.table, b.Engine.FindResource)
	}
	b.Put(core.KindIsolation, t)
	if old != nil && len(old.Rules()) > 0 {
		b.BeforePublishing(func() { b.Engine.EachResource(t.limit) })
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

// Rules are the rules with their defaults written out. The slice must not be changed.
func (t *Table) Rules() []Rule { return t.table.Rules() }

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.table.BindAs(r, name)
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

// Names says what the rules name.
func (t *Table) Names(names *core.Names) {
	for _, r := range t.table.Rules() {
		if r.Mode != core.Off && !r.Regex {
			names.Resource(r.Resource)
		}
	}
}

// Keeps reports whether a rule counts in this window: none does.
func (t *Table) Keeps(string, core.Role, node.Meter) bool { return false }

// KeepsGauge reports whether a rule counts with this gauge.
func (t *Table) KeepsGauge(resource string, role core.Role, owner any) bool {
	return role == core.RoleCluster && slices.ContainsFunc(t.table.For(resource), func(r Rule) bool {
		return r.owner(resource) == owner
	})
}

// Forget drops the controllers of a resource that has left.
func (t *Table) Forget(resource string) { t.table.Forget(resource) }

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	for _, c := range rules.(*Rules).controllers {
		t.table.Adopt(r, c.rule, c)
	}
}

// EachError calls f with the refusal of every rule and resource.
func (t *Table) EachError(f func(*core.BlockError)) {
	t.table.Each(func(c *controller) { f(c.refusal) })
}

// Figures says what each rule has done, over all resources.
func (t *Table) Figures() []core.RuleFigures {
	return t.table.Figures(core.KindIsolation, func(c *controller) (id string, refused, rehearsed int64) {
		return c.rule.ID, c.refusal.Refusals(), c.rehearsed.Load()
	})
}
