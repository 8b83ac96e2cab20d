package system

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

// Table is the compiled system rules of one revision. It implements core.Family.
//
// A rule counts for all resources together, and tells calls of each resource apart
// only where it refuses them. So there are two tables: one of the rules, which all
// stand at one place, and one of their refusals, a place for each resource.
type Table struct {
	gates    *core.Table[everywhere, gate]
	refusals *core.Table[everywhere, refusal]
	sampler  *core.Sampler
	inbound  *core.Resource // the place of the rules
	active   []*gate        // as declared, without those that are off
	timed    []*gate        // those that want to know of completions
}

// refusal is what a rule says to the calls of one resource.
type refusal struct {
	rule everywhere
	err  *core.BlockError
}

// everywhere is a rule as the tables see it: it applies to every name.
type everywhere struct{ Rule }

func (r everywhere) Info() core.RuleInfo {
	info := r.Rule.Info()
	info.Resource, info.Regex = ".*", true
	return info
}
func (r everywhere) WithID(id string) everywhere { return everywhere{r.Rule.WithID(id)} }
func (r everywhere) Equal(other everywhere) bool { return r.Rule.Equal(other.Rule) }

// Normalize returns the rules with their defaults written out and IDs that differ,
// or says which rule can't be honoured: as "system[2].threshold: ...".
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindSystem, rules, Rule.Normalized)
}

// Compile makes system rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the state of the
// rule with the same ID.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	t := &Table{sampler: b.Engine.Sampler()}
	old, _ := b.Previous(core.KindSystem).(*Table)
	if old != nil {
		t.inbound = old.inbound
	} else {
		t.inbound = &core.Resource{ClusterNode: b.Engine.Tree().Inbound()}
	}
	for i, r := range rules {
		if r.Metric.sampled() && r.Mode != core.Off {
			if err := t.sampler.Probe(r.Metric.quantity()); err != nil {
				return fmt.Errorf("system[%d].%w", i, core.BadField("metric",
					"%s can't be read here: %v; use concurrency, qps or rt on such a machine", r.Metric, err))
			}
		}
	}
	if err := t.build(b, rules, old); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	b.Put(core.KindSystem, t)
	return nil
}

func (t *Table) build(b *core.RulesetBuilder, rules []Rule, old *Table) (err error) {
	all := make([]everywhere, len(rules))
	for i, r := range rules {
		all[i] = everywhere{r}
	}
	t.gates, err = core.NewTable(all, func(r everywhere, _ *core.Resource, old *gate) *gate {
		g, s := newGate(b.Engine, b.Engine.Now(), b.Revision(), r.Rule, old)
		if s != nil {
			b.BeforePublishing(s.complete)
		}
		return g
	})
	if err != nil {
		return err
	}
	if old != nil {
		t.gates.Inherit(old.gates, func(string) (*core.Resource, bool) { return t.inbound, true })
	}
	t.active = t.gates.Bind(t.inbound)
	byID := make(map[string]*gate)
	var sampled []*gate
	var wants []core.Quantity
	for _, g := range t.active {
		byID[g.rule.ID] = g
		switch {
		case g.times != nil:
			t.timed = append(t.timed, g)
		case g.reading != nil:
			sampled = append(sampled, g)
			wants = append(wants, g.rule.Metric.quantity())
		}
	}
	b.BeforePublishing(func(int64) {
		t.sampler.Serve(core.KindSystem, wants, func(now int64) {
			for _, g := range sampled {
				g.learn(now)
			}
		})
	})

	t.refusals, err = core.NewTable(all, func(r everywhere, resource *core.Resource, old *refusal) *refusal {
		var retry core.Retrier
		if g := byID[r.ID]; g != nil {
			retry = g
		}
		next := &refusal{r, core.NewBlockError(core.KindSystem, resource.Name(), r.ID, retry)}
		if old != nil {
			next.err.Succeed(old.err)
		}
		return next
	})
	if err == nil && old != nil {
		t.refusals.Inherit(old.refusals, b.Engine.FindResource)
	}
	return err
}

// Rules are the rules with their defaults written out.
func (t *Table) Rules() []Rule {
	var rules []Rule
	for _, r := range t.gates.Rules() {
		rules = append(rules, r.Rule)
	}
	return rules
}

// Completed tells the rules of a call that has ended.
func (t *Table) Completed(inv *core.Invocation) {
	for _, g := range t.timed {
		g.times.add(inv.Now(), inv.Now()-inv.Began())
	}
}

// Bind returns the rules for the calls of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	if len(t.active) == 0 {
		return nil
	}
	refusals := t.refusals.BindAs(r, name)
	rules := make([]rule, len(refusals))
	for i, g := range t.active { // in the order of the rules, both
		rules[i] = rule{g, refusals[i].err}
	}
	return newRules(rules, refusals)
}

// Names says that the rules name nothing.
func (t *Table) Names(*core.Names) {}

// Keeps reports whether a rule counts in this window.
func (t *Table) Keeps(_ string, role core.Role, m node.Meter) bool {
	return role == core.RoleInbound && t.any(func(g *gate) bool { return g.rule.Metric == QPS && g.meter == m })
}

// KeepsGauge reports whether a rule counts with this gauge.
func (t *Table) KeepsGauge(_ string, role core.Role, owner any) bool {
	return role == core.RoleInbound && t.any(func(g *gate) bool { return g.rule.gauged() && g.meter.Owner == owner })
}

func (t *Table) any(want func(*gate) bool) bool {
	return slices.ContainsFunc(t.active, want)
}

// Forget drops what the rules keep for a resource that has left.
func (t *Table) Forget(resource string) { t.refusals.Forget(resource) }

// Adopt takes over what they keep for a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	for _, old := range rules.(*Rules).refusals {
		t.refusals.Adopt(r, old.rule, old)
	}
}

// EachError calls f with the refusal of every rule and resource.
func (t *Table) EachError(f func(*core.BlockError)) {
	t.refusals.Each(func(r *refusal) { f(r.err) })
}

// Figures says what each rule has done, over all resources.
func (t *Table) Figures() []core.RuleFigures {
	index := make(map[string]int)
	var figures []core.RuleFigures
	for i, r := range t.Rules() {
		index[r.ID] = i
		figures = append(figures, core.RuleFigures{Kind: core.KindSystem, ID: r.ID, Mode: r.Mode})
	}
	t.refusals.Each(func(r *refusal) { figures[index[r.rule.ID]].Refused += r.err.Refusals() })
	t.gates.Each(func(g *gate) { figures[index[g.rule.ID]].Rehearsed += g.rehearsed.Load() })
	return figures
}
