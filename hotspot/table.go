package hotspot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// Table is the compiled hotspot rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]
}

// Normalize returns the rules with their defaults written out and IDs that differ, or
// the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindHotspot, rules, func(r Rule) (Rule, error) {
		r.Exceptions = slices.Clone(r.Exceptions) // the caller may go on to change his
		return r.Normalized()
	})
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
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c, publish := newController(e, r, resource, old)
		b.BeforePublishing(publish)
		return c
	}
	t := &Table{}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindHotspot, rules, build, (*controller).acts); err != nil {
		return err
	}
	if old, ok := b.Previous(core.KindHotspot).(*Table); ok {
		t.Inherit(old.Table, e.FindResource)
	}
	b.Put(core.KindHotspot, t)
	return nil
}

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	rs := &Rules{controllers: controllers}
	if c := controllers[0]; len(controllers) == 1 && c.plain() {
		rs.plain = c
	}
	return rs
}

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}

// Figures says what each rule has done, over all resources.
func (t *Table) Figures() []core.RuleFigures {
	figures := t.FamilyTable.Figures()
	index := make(map[string]int)
	for i, f := range figures {
		index[f.ID] = i
	}
	hottest := make([]top, len(figures))
	t.Each(func(c *controller) {
		i := index[c.rule.ID]
		c.tell(&figures[i], &hottest[i])
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
