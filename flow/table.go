package flow

import (
	"cmp"
	"fmt"
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

// Table is the compiled flow rules of one revision. It implements core.Family.
type Table struct {
	core.FamilyTable[Rule, controller]

	sampler  *core.Sampler
	refs     map[string][]Rule // associated rules, by the resource they look at
	revision uint64
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or the first reason not to accept them.
func Normalize(rules []Rule, coldFactor int) ([]Rule, error) {
	return core.Normalize(core.KindFlow, rules, func(r Rule) (Rule, error) { return r.Normalized(coldFactor) })
}

// Compile makes flow rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the state of the
// rule with the same ID.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules, b.Engine.Config().ColdFactor)
	if err != nil {
		return err
	}
	e := b.Engine
	t := &Table{sampler: e.Sampler(), refs: make(map[string][]Rule), revision: b.Revision()}
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c, s := newController(e, e.Now(), t.revision, r, resource, old)
		if s != nil {
			b.BeforePublishing(s.complete)
		}
		return c
	}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindFlow, rules, build, (*controller).acts); err != nil {
		return err
	}
	if err := t.watchMemory(b, rules); err != nil {
		return err
	}
	for _, r := range rules {
		if r.Relation == Associated && r.Mode != core.Off {
			t.refs[r.Ref] = append(t.refs[r.Ref], r)
		}
	}
	if old, ok := b.Previous(core.KindFlow).(*Table); ok {
		t.Inherit(old.Table, e.FindResource)
	}
	b.Put(core.KindFlow, t)
	return nil
}

// watchMemory has the memory in use sampled for the rules that go by it.
func (t *Table) watchMemory(b *core.RulesetBuilder, rules []Rule) error {
	var wants []core.Quantity
	for i, r := range rules {
		if err := r.checkMachine(t.sampler); err != nil {
			return fmt.Errorf("flow[%d].%w", i, err)
		}
		if r.watchesMemory() && r.Mode != core.Off {
			wants = append(wants, r.quantity())
		}
	}
	b.BeforePublishing(func(int64) { t.sampler.Serve(core.KindFlow, wants, nil) })
	return nil
}

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	rs := &Rules{controllers: controllers, takers: slices.Clone(controllers)}
	slices.SortStableFunc(rs.takers, func(a, b *controller) int {
		return cmp.Or(a.rule.breadth()-b.rule.breadth(), cmp.Compare(a.rule.abundance(), b.rule.abundance()))
	})
	rs.spare()
	for mode := range rs.named {
		rs.named[mode] = make(map[string]bool)
		for _, c := range controllers {
			if o := c.rule.Origin; o != OriginDefault && o != OriginOther && c.rule.Mode <= core.Mode(mode) {
				rs.named[mode][o] = true
			}
		}
	}
	return rs
}

// Names says what the rules name.
func (t *Table) Names(names *core.Names) {
	for _, r := range t.Rules() {
		if r.Mode == core.Off {
			continue
		}
		if !r.Regex {
			names.Resource(r.Resource)
			if r.Relation == Direct && r.Origin != OriginDefault && r.Origin != OriginOther {
				names.Origin(r.Resource, r.Origin)
			}
		}
		switch r.Relation {
		case Associated:
			names.Resource(r.Ref)
		case Chain:
			names.Context(r.Ref)
			if !r.Regex {
				names.Call(r.Resource, r.Ref)
			}
		}
	}
}

// Keeps reports whether a rule counts in this window.
func (t *Table) Keeps(resource string, role core.Role, m node.Meter) bool {
	return t.any(resource, role, func(r Rule) bool {
		return r.windowed() && t.uses(r, resource, m)
	})
}

// uses reports whether a rule counts in this window of a resource's nodes, or will once
// it is at work there.
func (t *Table) uses(r Rule, resource string, m node.Meter) bool {
	at := resource
	if r.Relation == Associated { // it is at work where the calls are, which a pattern may say
		if at = r.Resource; r.Regex {
			used := m == node.Meter{Shape: r.shape()}
			t.Each(func(c *controller) { used = used || c.rule.ID == r.ID && c.meter == m })
			return used
		}
	}
	if c := t.Find(r.ID, at); c != nil {
		return c.meter == m
	}
	return !r.apart(at) && m == node.Meter{Shape: r.shape()}
}

// KeepsGauge reports whether a rule counts with this gauge, or did and is off: of one that
// a rule has to itself nobody else could tell later who is in flight.
func (t *Table) KeepsGauge(resource string, role core.Role, owner any) bool {
	if _, own := owner.(apart); own {
		return slices.ContainsFunc(slices.Concat(t.Made(resource), t.Resting(resource)), func(c *controller) bool {
			return c.rule.Metric == Concurrency && c.rule.role() == role && c.meter.Owner == owner
		})
	}
	return owner == nil && t.any(resource, role, func(r Rule) bool {
		return r.Metric == Concurrency && !r.apart(resource)
	})
}

func (t *Table) any(resource string, role core.Role, want func(Rule) bool) bool {
	for _, r := range t.For(resource) {
		if r.Relation != Associated && r.role() == role && want(r) {
			return true
		}
	}
	if role != core.RoleCluster {
		return false
	}
	return slices.ContainsFunc(t.refs[resource], want)
}

// role is on which of the resource's nodes the rule counts.
func (r Rule) role() core.Role {
	switch {
	case r.Relation == Chain:
		return core.RoleCall
	case r.Origin == OriginDefault:
		return core.RoleCluster
	}
	return core.RoleOrigin
}

// breadth says how many calls a rule concerns. Those that look without taking come
// first, or they would see what the call itself took. Then come the narrow ones:
// callers that a narrow rule refuses must not hold, even for an instant, what a
// broad one gives to everybody.
func (r Rule) breadth() int {
	switch {
	case r.Relation == Associated:
		return 0
	case r.role() != core.RoleCluster:
		return 1
	}
	return 2
}

// abundance says how much a rule has to give, roughly: units a second, or at once.
// Among rules of one breadth the scarcest takes first, for it refuses most calls, and
// those then hold nothing of the others.
func (r Rule) abundance() float64 {
	if r.Metric == Concurrency {
		return r.Threshold
	}
	return r.Threshold / r.Interval.Seconds()
}

// Adopt takes over the controllers of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}

// Figures says what each rule has done, over all resources, and what holds of a threshold
// that moves.
func (t *Table) Figures() []core.RuleFigures {
	figures := t.FamilyTable.Figures()
	for i, r := range t.Rules() {
		if r.watchesMemory() && r.Mode != core.Off {
			m := newMemoryLimit(t.sampler, r)
			figures[i].Threshold, figures[i].Memory = m.threshold(), m.reading.Value()
		}
	}
	return figures
}
