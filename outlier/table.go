package outlier

import (
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
	core.FamilyTable[Rule, controller]

	mu    shared.Mutex
	sites map[string]*site // by resource
}

// Normalize returns the rules with their defaults written out and IDs that differ,
// or the first reason not to accept them.
func Normalize(rules []Rule) ([]Rule, error) {
	return core.Normalize(core.KindOutlier, rules, Rule.Normalized)
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
	build := func(r Rule, resource *core.Resource, old *controller) *controller {
		c := t.newController(e, r, resource.Name(), old)
		b.BeforePublishing(c.publish)
		return c
	}
	if t.FamilyTable, err = core.NewFamilyTable(core.KindOutlier, rules, build, (*controller).acts); err != nil {
		return err
	}
	old, _ := b.Previous(core.KindOutlier).(*Table)
	if old != nil {
		t.Inherit(old.Table, e.FindResource)
		t.Each(t.register)
	}
	b.BeforePublishing(func(int64) { t.enforce(old) })
	b.Put(core.KindOutlier, t)
	return nil
}

// enforce tells the sites which rules are enforced from now on.
func (t *Table) enforce(old *Table) {
	pools := make(map[*site][]*pool)
	if old != nil {
		old.Each(func(c *controller) { pools[c.pool.site] = nil })
	}
	t.Each(func(c *controller) {
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

// Ejected lists the callees of a resource that calls are refused to at the moment,
// sorted. Beyond the cap on resources, all names share their callees.
func (t *Table) Ejected(resource string, now int64) []string {
	t.mu.Lock()
	s, ok := t.sites[resource]
	if !ok && len(t.sites) > 0 && len(t.For(resource)) > 0 {
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
	controllers := t.BindAs(r, name)
	if len(controllers) == 0 {
		return nil
	}
	t.register(controllers[0]) // it may have left in between
	return &Rules{controllers}
}

// Forget drops the callees of a resource that has left, unless it is back.
func (t *Table) Forget(resource string) {
	t.ForgetAnd(resource, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.sites, resource)
	})
}

// Adopt takes over the callees of a resource that was in use when it left.
func (t *Table) Adopt(r *core.Resource, rules any) {
	t.AdoptAll(r, rules.(*Rules).controllers)
}
