package hotspot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

// Table is the compiled hotspot rules of one revision. It implements core.Family.
type Table struct {
	table *core.Table[Rule, controller]
}

// Normalize returns the rules with their defaults written out and IDs that differ, or
// the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	normalized := make([]Rule, len(rules))
	for i, r := range rules {
		n, err := r.Normalized()
		if err != nil {
			return nil, fmt.Errorf("hotspot[%d].%w", i, err)
		}
		normalized[i] = n
	}
	normalized = Clone(normalized) // the caller may go on to change his
	unique, err := core.UniqueIDs(rules, normalized)
	if err != nil {
		return nil, fmt.Errorf("hotspot: %w", err)
	}
	return unique, nil
}

// Clone copies rules with all that they hold.
func Clone(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Exceptions = slices.Clone(rules[i].Exceptions)
	}
	return rules
}

// Compile makes hotspot rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the values of the
// rule with the same ID, unless they look at another argument.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	e := b.Engine
	compiling := true
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c, publish := newController(e, r, resource, old)
		if compiling {
			b.BeforePublishing(publish)
		} else {
			publish()
		}
		return c
	}
	t := &Table{}
	if t.table, err = core.NewTable(rules, build); err != nil {
		return fmt.Errorf("hotspot: %w", err)
	}
	if old, ok := b.Previous(core.KindHotspot).(*Table); ok {
		t.table.Inherit(old.table, e.FindResource)
	}
	compiling = false
	b.Put(core.KindHotspot, t)
	return nil
}

// Rules are the rules with their defaults written out. The slice must not be changed.
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
		if r.Mode != core.Off && !r.Regex {
			names.Resource(r.Resource)
		}
	}
}

// Keeps reports that the rules need no window of any node: they count values.
func (t *Table) Keeps(string, core.Role, node.Meter) bool { return false }

// KeepsGauge reports that the rules need no gauge of any node.
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
	index := make(map[string]int)
	var figures []core.RuleFigures
	hottest := make([]top, len(t.table.Rules()))
	for i, r := range t.table.Rules() {
		index[r.ID] = i
		figures = append(figures, core.RuleFigures{Kind: core.KindHotspot, ID: r.ID, Resource: r.Resource, Mode: r.Mode})
	}
	t.table.Each(func(c *controller) {
		i := index[c.rule.ID]
		f := &figures[i]
		f.Refused += c.refusal.Refusals()
		f.Rehearsed += c.rehearsed.Load()
		c.tell(f, &hottest[i])
	})
	for i := range figures {
		figures[i].Top = hottest[i].figures()
	}
	return figures
}

// topValues is how many values of a rule are shown.
const topValues = 10

// top is the hottest values of a rule, the hottest first.
type top []hot

type hot struct {
	heat  int64
	value core.Value
	core.ValueFigures
}

// add notes a value if it is among the hottest.
func (t *top) add(h hot) {
	i, _ := slices.BinarySearchFunc(*t, h, func(a, b hot) int {
		return cmp.Or(cmp.Compare(b.heat, a.heat), cmp.Compare(b.Passed+b.Refused, a.Passed+a.Refused),
			strings.Compare(a.value.String(), b.value.String()), strings.Compare(a.Resource, b.Resource))
	})
	if i == topValues {
		return
	}
	*t = slices.Insert(*t, i, h)
	*t = (*t)[:min(len(*t), topValues)]
}

func (t top) figures() []core.ValueFigures {
	var figures []core.ValueFigures
	for _, h := range t {
		h.Value = h.value.String()
		figures = append(figures, h.ValueFigures)
	}
	return figures
}

// tell adds the values of a controller to the figures, and to the hottest.
func (c *controller) tell(f *core.RuleFigures, hottest *top) {
	now := c.engine.Now()
	c.values.each(func(x *cell) {
		f.InFlight += x.held
		if x.isRest() {
			f.Overflowed += x.shard.overflowed
			return
		}
		f.Values++
		if x.passed+x.refused > 0 {
			hottest.add(hot{x.heat.at(now), x.value, core.ValueFigures{
				Resource: c.refusal.Resource, Passed: x.passed, Refused: x.refused, InFlight: x.held,
			}})
		}
	})
}
