package outlier

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
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

// Table is the compiled outlier rules of one revision. It implements core.Family.
type Table struct {
	table *core.Table[Rule, controller]

	mu    shared.Mutex
	sites map[string]*site // by resource
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
			return nil, fmt.Errorf("outlier[%d].%w", i, err)
		}
		normalized[i] = n
	}
	unique, err := core.UniqueIDs(rules, normalized)
	if err != nil {
		return nil, fmt.Errorf("outlier: %w", err)
	}
	return unique, nil
}

// Compile makes outlier rules part of the next revision of an engine's rules. Rules
// that did not change go on as they are, those that did take over the callees of the
// rule with the same ID.
func Compile(b *core.RulesetBuilder, rules []Rule) error {
	rules, err := Normalize(rules)
	if err != nil {
		return err
	}
	e, t := b.Engine, &Table{sites: make(map[string]*site)}
	compiling := true
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c := t.newController(e, r, resource.Name(), old)
		if compiling {
			b.BeforePublishing(c.publish)
		} else {
			c.publish()
		}
		return c
	}
	if t.table, err = core.NewTable(rules, build); err != nil {
		return fmt.Errorf("outlier: %w", err)
	}
	old, _ := b.Previous(core.KindOutlier).(*Table)
	if old != nil {
		t.table.Inherit(old.table, e.FindResource)
		t.table.Each(t.register)
	}
	compiling = false
	b.BeforePublishing(func() { t.enforce(old) })
	b.Put(core.KindOutlier, t)
	return nil
}

// enforce tells the sites which rules are enforced from now on.
func (t *Table) enforce(old *Table) {
	pools := make(map[*site][]*pool)
	if old != nil {
		old.table.Each(func(c *controller) { pools[c.pool.site] = nil })
	}
	t.table.Each(func(c *controller) {
		if c.rule.Mode == core.Enforce {
			pools[c.pool.site] = append(pools[c.pool.site], c.pool)
		}
	})
	for s, list := range pools {
		s.mu.Lock()
		s.enforce(list)
		s.mu.Unlock()
	}
}

// site is that of a resource, made if there is none.
func (t *Table) site(resource string) *site {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sites[resource]
	if s == nil {
		s = new(site)
		t.sites[resource] = s
	}
	return s
}

func (t *Table) register(c *controller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sites[c.resource] = c.pool.site
}

// Rules are the rules with their defaults written out. The slice must not be
// changed.
func (t *Table) Rules() []Rule { return t.table.Rules() }

// Ejected lists the callees of a resource that calls are refused to at the moment,
// sorted. Beyond the cap on resources, all names share their callees.
func (t *Table) Ejected(resource string, now int64) []string {
	t.mu.Lock()
	s, ok := t.sites[resource]
	if !ok && len(t.sites) > 0 && len(t.table.For(resource)) > 0 {
		s = t.sites[node.OverflowName]
	}
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.refusing(now)
}

// Bind returns the rules of a resource as a *Rules, or nil.
func (t *Table) Bind(r *core.Resource, name string) any {
	controllers := t.table.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	t.register(controllers[0]) // it may have left in between
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

// Keeps reports that no rule needs a window of a node: breakers count by themselves.
func (t *Table) Keeps(string, core.Role, node.Meter) bool { return false }

// KeepsGauge reports that no rule needs a gauge of a node.
func (t *Table) KeepsGauge(string, core.Role, any) bool { return false }

// Forget drops the callees of a resource that has left.
func (t *Table) Forget(resource string) {
	t.table.Forget(resource)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sites, resource)
}

// Adopt takes over the callees of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	for _, c := range rules.(*Rules).controllers {
		t.table.Adopt(r, c.rule, c)
	}
}

// EachError calls f with the refusal of every rule and resource.
func (t *Table) EachError(f func(*core.BlockError)) {
	t.table.Each(func(c *controller) { f(c.refusal) })
}
