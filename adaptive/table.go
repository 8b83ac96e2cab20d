package adaptive

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
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

// Table is the compiled adaptive rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]
}

// Normalize returns the rules with their defaults written out and IDs that differ, or
// the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindAdaptive, rules, Rule.Normalized)
}

// Compile makes adaptive rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did go on from what the rule with
// the same ID has learned.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c := newController(r, resource, old)
		b.BeforePublishing(c.begin)
		return c
	}
	t := &Table{}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindAdaptive, rules, build, (*controller).acts); err != nil {
		return err
	}
	if old, ok := b.Previous(core.KindAdaptive).(*Table); ok {
		t.Inherit(old.Table, b.Engine.FindResource)
	}
	b.Put(core.KindAdaptive, t)
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

// KeepsGauge reports whether a rule counts with this gauge, or did and is off: of one that
// a rule has to itself nobody else could tell later who is in flight.
func (t *Table) KeepsGauge(resource string, role core.Role, owner any) bool {
	if role != core.RoleCluster {
		return false
	}
	if slices.ContainsFunc(t.Made(resource), func(c *controller) bool { return c.counts(owner) }) {
		return true
	}
	if _, everybodys := owner.(node.Everybody); everybodys {
		return false
	}
	return slices.ContainsFunc(t.Resting(resource), func(c *controller) bool { return owner == c.owner || owner == c.rehearsal })
}

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}

// shownLimits is for how many resources of a rule the limit is shown.
const shownLimits = 100

// Figures says what each rule has done, over all resources, and what it has learned of
// each.
func (t *Table) Figures() []core.RuleFigures {
	figures := t.FamilyTable.Figures()
	limits := make(map[string][]core.LimitFigures)
	t.Each(func(c *controller) {
		if c.rule.Mode != core.Off {
			limits[c.rule.ID] = append(limits[c.rule.ID], c.limit.figures(c.resource.Name()))
		}
	})
	for i := range figures {
		known := limits[figures[i].ID]
		slices.SortFunc(known, func(a, b core.LimitFigures) int { return cmp.Compare(a.Resource, b.Resource) })
		figures[i].Limits = known[:min(len(known), shownLimits)]
	}
	return figures
}
