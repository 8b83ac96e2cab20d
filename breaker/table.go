package breaker

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
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
	table  *core.Table[Rule, controller]
	engine *core.Engine
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	if len(rules) == 0 {
		return nil, nil // no rules have one form
	}
	normalized := make([]Rule, len(rules))
	for i, r := range rules {
		n, err := r.Normalized()
		if err != nil {
			return nil, fmt.Errorf("breaker[%d].%w", i, err)
		}
		normalized[i] = n
	}
	unique, err := core.UniqueIDs(rules, normalized)
	if err != nil {
		return nil, fmt.Errorf("breaker: %w", err)
	}
	return unique, nil
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
	compiling := true
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c, terms := newController(e, listeners, r, resource.Name(), old)
		switch {
		case old == nil || r.Mode == core.Off: // one that is off keeps what it has for later
		case compiling:
			b.BeforePublishing(func() { c.machine.adopt(terms, e.Now()) })
		default:
			c.machine.adopt(terms, e.Now())
		}
		return c
	}
	t := &Table{engine: e}
	if t.table, err = core.NewTable(rules, build); err != nil {
		return fmt.Errorf("breaker: %w", err)
	}
	if old, ok := b.Previous(core.KindBreaker).(*Table); ok {
		t.table.Inherit(old.table, e.FindResource)
	}
	compiling = false
	b.Put(core.KindBreaker, t)
	return nil
}

// Rules are the rules with their defaults written out. The slice must not be
// changed.
func (t *Table) Rules() []Rule { return t.table.Rules() }

// Bind returns the breakers of a resource as a *Rules, or nil.
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
		if r.Mode != core.Off && !r.Regex && !r.isDefault() {
			names.Resource(r.Resource)
		}
	}
}

// Keeps reports that no rule needs a window of a node: breakers count by themselves.
func (t *Table) Keeps(string, core.Role, node.Meter) bool { return false }

// KeepsGauge reports that no rule needs a gauge of a node.
func (t *Table) KeepsGauge(string, core.Role, any) bool { return false }

// Forget drops the breakers of a resource that has left.
func (t *Table) Forget(resource string) { t.table.Forget(resource) }

// Adopt takes over the breakers of a resource that was in use when it left.
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
	return t.table.Figures(core.KindBreaker, func(c *controller) (id string, refused, rehearsed int64) {
		return c.rule.ID, c.refusal.Refusals(), c.rehearsed.Load()
	})
}

// each calls f with the breakers of a rule, or of all rules, in the order of the rules
// and the names of the resources.
func (t *Table) each(f func(*controller)) {
	index := make(map[string]int)
	for i, r := range t.table.Rules() {
		index[r.ID] = i
	}
	var all []*controller
	t.table.Each(func(c *controller) { all = append(all, c) })
	slices.SortFunc(all, func(a, b *controller) int {
		return cmp.Or(index[a.rule.ID]-index[b.rule.ID], cmp.Compare(a.resource, b.resource))
	})
	for _, c := range all {
		f(c)
	}
}
