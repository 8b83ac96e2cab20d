package breaker

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// Info tells the rule table what it needs to know.
func (r Rule) Info() core.RuleInfo {
	return core.RuleInfo{
		ID: r.ID, Resource: r.Resource, Regex: r.Regex, Mode: r.Mode,
		Default: r.isDefault(), Except: r.Exclude,
	}
}

// WithID returns the rule with another ID.
func (r Rule) WithID(id string) Rule {
	r.ID = id
	return r
}

// Like names what makes the rule that rule, whatever its ID.
func (r Rule) Like() string { return r.madeID() }

// Equal reports whether two rules are the same in every field.
func (r Rule) Equal(other Rule) bool { return reflect.DeepEqual(r, other) }

// Table is the compiled breaker rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]

	engine *core.Engine
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindBreaker, rules, Rule.Normalized)
}

// Compile makes breaker rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the state of the
// rule with the same ID. listeners are told of every change of state; they may be nil,
// and should be the same for every revision: rules that did not change keep theirs.
func Compile(b *core.RulesetBuilder, rules []Rule, listeners *Listeners) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	e := b.Engine
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c, terms := newController(e, listeners, r, resource.Name(), old)
		if old != nil && r.Mode != core.Off { // one that is off keeps what it has for later
			b.BeforePublishing(func(now int64) { c.machine.adopt(terms, now) })
		}
		return c
	}
	t := &Table{engine: e}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindBreaker, rules, build, (*controller).acts); err != nil {
		return err
	}
	if old, ok := b.Previous(core.KindBreaker).(*Table); ok {
		t.Inherit(old.Table, e.FindResource)
	}
	b.Put(core.KindBreaker, t)
	return nil
}

// Bind returns the breakers of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	return &Rules{controllers}
}

// Adopt takes over the breakers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}

// Figures says what each rule has done, over all resources, and what its breakers do.
func (t *Table) Figures() []core.RuleFigures {
	figures := t.FamilyTable.Figures()
	rule, now := 0, t.engine.Now()
	t.each(func(c *controller) { // in the order of the rules
		for figures[rule].ID != c.rule.ID {
			rule++
		}
		if f := &figures[rule]; f.Mode != core.Off {
			f.Breakers = append(f.Breakers, c.machine.status(f.ID, c.resource, now).Figures(f.Mode))
		}
	})
	return figures
}

// each calls f with the breakers of a rule, or of all rules, in the order of the rules
// and the names of the resources.
func (t *Table) each(f func(*controller)) {
	index := make(map[string]int)
	for i, r := range t.Rules() {
		index[r.ID] = i
	}
	var all []*controller
	t.Each(func(c *controller) { all = append(all, c) })
	slices.SortFunc(all, func(a, b *controller) int {
		return cmp.Or(index[a.rule.ID]-index[b.rule.ID], cmp.Compare(a.resource, b.resource))
	})
	for _, c := range all {
		f(c)
	}
}
