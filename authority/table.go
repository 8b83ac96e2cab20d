package authority

import (
	"github.com/penstock-go/penstock/core"
)

// Table is the compiled authority rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or says which rule can't be honoured: as "authority[2].origins: ...".
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindAuthority, rules, Rule.Normalized)
}

// Compile makes authority rules part of the next revision of an engine's rules.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	t := new(Table)
	if t.FamilyTable, err = core.NewFamilyTable(core.KindAuthority, rules, newController, (*controller).acts); err != nil {
		return err
	}
	if old, ok := b.Previous(core.KindAuthority).(*Table); ok {
		t.Inherit(old.Table, b.Engine.FindResource)
	}
	b.Put(core.KindAuthority, t)
	return nil
}

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	return &Rules{controllers}
}

// Names says what the rules name.
func (t *Table) Names(names *core.Names) {
	for _, r := range t.Rules() {
		if r.Mode == core.Off || r.Regex {
			continue
		}
		names.Resource(r.Resource)
		for _, origin := range r.Origins {
			names.Origin(r.Resource, origin)
		}
	}
}

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}
