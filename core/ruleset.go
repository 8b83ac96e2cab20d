package core

import (
	"time"

	"github.com/penstock-go/penstock/node"
)

// Ruleset is one revision of the rules of all families. It doesn't change once
// made. An engine has one at a time, in one pointer, so that a decision sees one
// whole revision.
type Ruleset struct {
	Revision uint64
	families [kinds]Family
	bare     *binding // of all resources without rules
}

// Family is the compiled rules of one family.
type Family interface {
	// Bind returns the rules that apply to a resource, in whatever form the
	// family's slot wants them (see [Invocation.Rules]), or nil if there are none.
	// name is the resource's, except for the overflow resource, which stands for
	// many (see [Table.BindAs]).
	Bind(r *Resource, name string) any
	// Names says what the rules name. It has a node outside the caps for as long.
	Names(*Names)
	// Keeps reports whether a rule needs this meter on nodes of this role of the
	// resource.
	Keeps(resource string, role Role, meter node.Meter) bool
	// KeepsGauge is Keeps for gauges.
	KeepsGauge(resource string, role Role, owner any) bool
	// Figures says what each rule has done.
	Figures() []RuleFigures
	// EachError calls f with the refusal of every rule and resource.
	EachError(f func(*BlockError))
	// Forget drops what the family keeps for a resource that has left. If it was in
	// use and comes back, Adopt is given what Bind had returned for it, perhaps under
	// older rules.
	Forget(resource string)
	Adopt(r *Resource, rules any)
}

// RuleFigures is what a rule has done since it was loaded, over all resources.
type RuleFigures struct {
	Kind     Kind
	ID       string
	Resource string // as in the rule: a name or a pattern
	Mode     Mode
	Refused  int64 // calls
	// Rehearsed is the calls that a shadow rule would have refused.
	Rehearsed int64

	// Threshold is what holds at the moment, of a rule whose threshold moves with the
	// memory in use, and Memory what that was when it was sampled last: a share, or bytes
	// if the rule has its marks in bytes; [Unknown] if it can't be read. Of other rules both are 0.
	Threshold float64
	Memory    float64

	// The rest is of rules that tell values apart: how many they know at the moment,
	// the units of all of them in flight where the rule limits those, how often a value
	// found no place among them and was judged together with others, and those that are
	// asked for most, the most first.
	Values     int
	InFlight   int64
	Overflowed int64
	Top        []ValueFigures

	// Limits are what a rule that learns its limit has learned, by resource.
	Limits []LimitFigures

	// Breakers are those of a breaker rule, one for each resource that needed one; and
	// those of an outlier rule whose callee is ejected. They are sorted by resource and
	// callee.
	Breakers []BreakerFigures
}

// BreakerFigures is what a breaker does at the moment.
type BreakerFigures struct {
	Rule     string // its ID
	Resource string
	Callee   string // "" where it is that of the whole resource
	State    string // as in rule files and listeners: closed, open, halfOpen and so on
	Mode     Mode
	Since    time.Time // when the state began; zero if it never was another
	RetryAt  time.Time // when the next call is let in; zero if that can't be told
	// Calls that completed in the last interval and count, and those of them that failed
	// or were slow.
	Calls, Bad int64
	Probes     int // that are out and waited for
}

// LimitFigures is what a rule has learned of one resource.
type LimitFigures struct {
	Resource string
	Limit    int64 // the learned one, in units
	// InForce is the limit at the moment, which is moved up and down around Limit to see
	// what that does; 0 if the rule limits nobody, being in shadow mode.
	InForce int64
	// FloorRT is how long a call takes when fewer are in flight than the limit, and
	// LimitRT when there are more; 0 as long as that isn't known.
	FloorRT, LimitRT time.Duration
	Throughput       float64 // units completed a second when it looked last
}

// ValueFigures is what a rule has done with one value of a resource since it got to know
// it.
type ValueFigures struct {
	Resource string
	Value    string // as [Value.String] shows it
	Passed   int64  // calls
	Refused  int64
	InFlight int64 // units, where the rule limits those
}

// RuleFigures are the figures of every rule, family by family, in the order in
// which they were declared.
func (s *Ruleset) RuleFigures() []RuleFigures {
	var figures []RuleFigures
	for _, family := range s.families {
		if family != nil {
			figures = append(figures, family.Figures()...)
		}
	}
	return figures
}

// Role is which of a resource's nodes is meant.
type Role uint8

// The roles.
const (
	RoleCluster Role = iota // the resource's node over all contexts
	RoleCall                // its nodes in single contexts
	RoleOrigin              // its nodes of single callers
	RoleInbound             // the node of all inbound calls, whose resource has no name
)

// RulesetBuilder collects the families of the next revision.
type RulesetBuilder struct {
	Engine   *Engine
	previous *Ruleset
	next     *Ruleset
	last     []func(now int64)

	published bool
}

// Revision is the number of the revision that is being built.
func (b *RulesetBuilder) Revision() uint64 { return b.next.Revision }

// Previous returns the compiled rules that the family has now, or nil.
func (b *RulesetBuilder) Previous(kind Kind) Family { return b.previous.families[kind] }

// Compiled returns what was put for a family.
func (b *RulesetBuilder) Compiled(kind Kind) Family { return b.next.families[kind] }

// Put sets the compiled rules of a family.
func (b *RulesetBuilder) Put(kind Kind, family Family) { b.next.families[kind] = family }

// BeforePublishing has f called when nothing can fail any more, right before the next
// revision is published: the place for what can't be undone. f is told the time, and must
// not call anything of the user's, such as the clock. When the revision has been
// published, f is called at once: what is built for a resource that comes later is in
// force as soon as it is there.
func (b *RulesetBuilder) BeforePublishing(f func(now int64)) {
	if b.published {
		f(b.Engine.Now())
		return
	}
	b.last = append(b.last, f)
}

// Update replaces the rules of the engine: build puts every family's into the
// builder. If it fails or panics, nothing has changed. Updates run one after the other. Calls go by
// the old rules until the new ones are published; those of resources whose rules are not
// found yet wait until then: build must make none.
//
// What the new rules name is pinned before they are published, and what only the
// old ones named is let go after.
func (e *Engine) Update(build func(*RulesetBuilder) error) error {
	e.updating.Lock()
	defer e.updating.Unlock()
	old := e.rules.Load()
	b := &RulesetBuilder{Engine: e, previous: old, next: &Ruleset{Revision: old.Revision + 1}}
	defer func() {
		if !b.published { // in an error, a panic or the end of the goroutine
			e.letGo(old, old.names())
		}
	}()
	names, found, err := e.publish(b, build)
	if err != nil {
		return err
	}
	for _, r := range found {
		r.take()
	}
	e.letGo(b.next, names)
	b.previous, b.last = nil, nil // who keeps the builder keeps no rules of before
	return nil
}

// publish brings the next set into force. It returns what that names, and what rules it
// has for the resources: until they are told, each finds them at its next call.
func (e *Engine) publish(b *RulesetBuilder, build func(*RulesetBuilder) error) (*Names, []rebound, error) {
	e.binding.Lock()
	defer e.binding.Unlock()
	if err := build(b); err != nil {
		return nil, nil, err
	}
	b.next.bare = e.bare(b.next)
	names := b.next.names()
	e.pin(names)
	var found []rebound
	for r := range e.resources.all() {
		last, next := r.bound.Load(), e.rebind(r, b.next)
		if last != nil || names.named(r.Name()) { // others may leave and look as if they had not
			found = append(found, rebound{r, last, next})
		}
	}
	now := e.Now() // from here on nothing of the user's is called, and nothing panics
	for i := 0; i < len(b.last); i++ {
		b.last[i](now)
	}
	e.rules.Store(b.next)
	b.published = true
	return names, found, nil
}

// Rules is the present rule set.
func (e *Engine) Rules() *Ruleset { return e.rules.Load() }

// Family returns the compiled rules of a family, or nil.
func (s *Ruleset) Family(kind Kind) Family { return s.families[kind] }

// Names are what a rule set names: contexts, and resources, each with callers and
// with the contexts in which it is called.
type Names struct {
	resources map[string]map[string]bool
	calls     map[string]map[string]bool
	contexts  map[string]bool
}

// Resource notes a resource.
func (n *Names) Resource(name string) {
	if _, noted := n.resources[name]; !noted {
		n.resources[name] = nil
	}
}

// named reports whether the rules name the resource.
func (n *Names) named(resource string) bool {
	_, noted := n.resources[resource]
	return noted
}

// Origin notes a caller of a resource.
func (n *Names) Origin(resource, origin string) {
	if n.resources[resource] == nil {
		n.resources[resource] = make(map[string]bool)
	}
	n.resources[resource][origin] = true
}

// Context notes a context.
func (n *Names) Context(name string) { n.contexts[name] = true }

// Call notes a resource in a context.
func (n *Names) Call(resource, context string) {
	n.Resource(resource)
	n.Context(context)
	if n.calls[resource] == nil {
		n.calls[resource] = make(map[string]bool)
	}
	n.calls[resource][context] = true
}

// names are what the rules of the set name.
func (s *Ruleset) names() *Names {
	names := &Names{
		resources: make(map[string]map[string]bool),
		calls:     make(map[string]map[string]bool),
		contexts:  map[string]bool{node.DefaultContext: true},
	}
	for _, family := range s.families {
		if family != nil {
			family.Names(names)
		}
	}
	return names
}

// pin gives everything that the rules name a node for keeps.
func (e *Engine) pin(names *Names) {
	for name, origins := range names.resources {
		r := e.resources.Pin(name)
		for origin := range origins {
			r.Origins().Pin(origin)
		}
		for context := range names.calls[name] {
			r.Calls().Reserve(context) // in the tree once it is called
		}
	}
	for name := range names.contexts {
		e.tree.Entrances().Pin(name)
	}
}

// letGo ends what only other rules named or metered.
func (e *Engine) letGo(set *Ruleset, names *Names) {
	e.tree.Entrances().Unpin(func(name string) bool { return names.contexts[name] })
	e.unbinding(func() { set.trim("", RoleInbound, &e.tree.Inbound().StatisticNode) })
	e.resources.Unpin(names.named)
	for r := range e.resources.all() {
		origins := names.resources[r.Name()]
		r.Origins().Unpin(func(origin string) bool { return origins[origin] })
		calls := names.calls[r.Name()]
		r.Calls().Unpin(func(context string) bool { return context == node.OverflowName || calls[context] })
		e.unbinding(func() { set.trimAll(r) })
	}
}

// unbinding calls f while no rules are found. What is built for them meters before
// anybody knows of it; and who finds rules holds the lock of their table and wants that
// of a node, which trim does the other way round.
func (e *Engine) unbinding(f func()) {
	e.binding.Lock()
	defer e.binding.Unlock()
	f()
}

// trimAll drops the meters of a resource's nodes that no rule needs any more.
func (s *Ruleset) trimAll(r *Resource) {
	s.trim(r.Name(), RoleCluster, &r.StatisticNode)
	for _, n := range r.Calls().All() {
		s.trim(r.Name(), RoleCall, &n.StatisticNode)
	}
	for _, n := range r.Origins().All() {
		s.trim(r.Name(), RoleOrigin, &n.StatisticNode)
	}
	if n := r.OverflowOrigin(); n != nil {
		s.trim(r.Name(), RoleOrigin, &n.StatisticNode)
	}
}

// trim drops the meters of a node that no rule needs any more.
func (s *Ruleset) trim(resource string, role Role, n *node.StatisticNode) {
	if !n.Metered() {
		return
	}
	n.KeepMeters(
		func(m node.Meter) bool {
			return s.keeps(func(f Family) bool { return f.Keeps(resource, role, m) })
		},
		func(owner any) bool {
			return s.keeps(func(f Family) bool { return f.KeepsGauge(resource, role, owner) })
		})
}

func (s *Ruleset) keeps(needs func(Family) bool) bool {
	for _, family := range s.families {
		if family != nil && needs(family) {
			return true
		}
	}
	return false
}
