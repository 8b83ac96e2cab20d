package authority

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

// Table is the compiled authority rules of one revision. It implements core.Family.
type Table struct {
	table *core.Table[Rule, controller]
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or says which rule can't be honoured: as "authority[2].origins: ...".
func Normalize(rules []Rule) ([]Rule, error) {
	if len(rules) == 0 {
		return nil, nil // no rules have one form
	}
	normalized := make([]Rule, len(rules))
	for i, r := range rules {
		n, err := r.Normalized()
		if err != nil {
			return nil, fmt.Errorf("authority[%d].%w", i, err)
		}
		normalized[i] = n
	}
	unique, err := core.UniqueIDs(rules, normalized)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	return unique, nil
}

// Compile makes authority rules part of the next revision of an engine's rules.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	t := new(Table)
	if t.table, err = core.NewTable(rules, newController); err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	if old, ok := b.Previous(core.KindAuthority).(*Table); ok {
		t.table.Inherit(old.table, b.Engine.FindResource)
	}
	b.Put(core.KindAuthority, t)
	return nil
}

// Rules are the rules with their defaults written out. The slice must not be
// changed.
func (t *Table) Rules() []Rule { return t.table.Rules() }

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.table.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	return &Rules{controllers}
}

// Names says what the rules name.
func (t *Table) Names(names *core.Names) {
	for _, r := range t.table.Rules() {
		if r.Mode == core.Off || r.Regex {
			continue
		}
		names.Resource(r.Resource)
		for _, origin := range r.Origins {
			names.Origin(r.Resource, origin)
		}
	}
}

// Keeps reports that no authority rule counts in a window.
func (t *Table) Keeps(string, core.Role, node.Meter) bool { return false }

// KeepsGauge reports that no authority rule counts with a gauge.
func (t *Table) KeepsGauge(string, core.Role, any) bool { return false }

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
	return t.table.Figures(core.KindAuthority, func(c *controller) (id string, refused, rehearsed int64) {
		return c.rule.ID, c.refusal.Refusals(), c.rehearsed.Load()
	})
}
