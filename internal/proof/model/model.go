package model

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// Config holds the engine's settings that matter to the model.
type Config struct {
	Now      int64
	Interval time.Duration // of the second window; 0 means a second
	Buckets  int           // of that; 0 means 2
	Occupy   time.Duration // how long a borrowing call may wait; 0 means 500 ms
	Direct   bool          // there are no slots other than the families
}

// Model is a second, simple engine, for one caller at a time.
type Model struct {
	config     Config
	now        int64
	revision   uint64 // of the rules
	calls      []*Call
	windows    []*window
	semaphores []*semaphore
	set        rules.Set
	rules      []*limiter           // of flow and system rules, as declared; rules that are off have one only if they were on
	values     []*valued            // hotspot rules in effect
	gates      []*gate              // system rules that look at the machine
	lines      []*line              // isolation rules in shadow mode
	breakers   []*Breaker           // of the rules, for existing resources
	tallies    map[ruleKey]*Figures // of the rules
	entered    map[string]bool      // resources that a call has asked for
	places     map[place]bool       // nodes created by calls, or named by enforced rules
	patterns   map[string]*regexp.Regexp
	changes    []Change // of breakers, not reported yet
	pending    pending
	load, cpu  float64 // the machine's values
}

// New returns a model of a guard without rules.
func New(config Config) *Model {
	config.Interval, config.Buckets = cmp.Or(config.Interval, time.Second), cmp.Or(config.Buckets, 2)
	config.Occupy = cmp.Or(config.Occupy, 500*time.Millisecond)
	return &Model{
		config: config, now: config.Now, entered: make(map[string]bool),
		places:   map[place]bool{inboundRoot: true, cluster(node.OverflowName): true}, // which always exist
		revision: 1,                                                                   // a guard begins by loading no rules
		patterns: make(map[string]*regexp.Regexp), load: -1, cpu: -1, pending: makePending(),
	}
}

// Advance lets time pass. A clock that is set back does not count as time.
func (m *Model) Advance(to int64) { m.now = max(m.now, to) }

// Machine sets the machine's load and CPU usage.
func (m *Model) Machine(load, cpu float64) { m.load, m.cpu = load, cpu }

type ruleKey struct {
	kind core.Kind
	id   string
}

// Figures count the calls that a rule has refused, or would have in shadow mode.
type Figures struct{ Refused, ShadowBlocked int64 }

// Figures returns the counts of a rule.
func (m *Model) Figures(kind core.Kind, id string) Figures {
	if f := m.tallies[ruleKey{kind, id}]; f != nil {
		return *f
	}
	return Figures{}
}

// By is a rule that makes a call wait, or refuses it.
type By struct {
	Kind core.Kind
	ID   string
	*Figures
	// again returns when a call of one unit may retry; looked is false if that is not checked.
	again func(c *Call) (wait time.Duration, known, looked bool)
}

func (m *Model) by(kind core.Kind, id string) *By {
	f := m.tallies[ruleKey{kind, id}]
	if f == nil { // of a removed rule under which a call still waits
		f = new(Figures)
	}
	return &By{Kind: kind, ID: id, Figures: f}
}

// place is a node: a resource's, or the node of one of its contexts or callers.
type place struct{ kind, resource, name string }

func cluster(resource string) place { return place{kind: "cluster", resource: resource} }

var inboundRoot = place{kind: "inbound"}

// State is a call's state.
type State int

// The states of a call.
const (
	Asking State = iota
	Waiting
	Running
	Done
	Blocked
)

// Call is a call and its outcome. The caller sets the first fields.
type Call struct {
	Resource, Context, Origin string // the context "" is the default one
	Units                     int64  // at least 1
	Inbound, Prioritized      bool
	Params                    map[string][]any
	Args                      []any
	Left                      time.Duration // until its deadline: 0 if it has passed or the context has ended, Endless if there is none
	Neutral                   bool          // its end says nothing about the resource, as known at Exit

	State State
	By    *By           // the rule that it waits for, or that refused it
	Wait  time.Duration // imposed on it, or 0 if it waits only for a permit

	nodes    []place // that count it
	began    int64
	at       int64 // when it passed or was refused
	ended    int64
	failed   bool
	borrowed bool
	waits    bool     // some rule makes it wait
	wake     int64    // when a call that waits for turns wakes, as things stand
	firm     int64    // not before this, regardless of its turns
	turns    []*turn  // in queues
	queued   *waiter  // its place in an isolation rule's queue
	undo     []func() // gives back what else it took, if it is refused later
	atExit   []func()
	watchers []watcher
	stamps   []stamp // of the breakers that admitted it
}

// Endless is the time left to a call without a deadline.
const Endless = time.Duration(math.MaxInt64)

// place finds the nodes that count a call.
func (c *Call) place() {
	if c.Context == "" {
		c.Context = node.DefaultContext
	}
	c.nodes = []place{{"call", c.Resource, c.Context}, cluster(c.Resource)}
	if c.Origin != "" {
		c.nodes = append(c.nodes, place{"origin", c.Resource, c.Origin})
	}
	if c.Inbound {
		c.nodes = append(c.nodes, inboundRoot)
	}
}

func (c *Call) on(p place) bool { return slices.Contains(c.nodes, p) }

func (c *Call) passed() bool { return c.State == Running || c.State == Done }

// verdict is a rule's decision: a refusal, or a wait before the call may run.
type verdict struct {
	refused  *By
	wait     time.Duration
	by       *By
	borrowed bool
}

// longer returns the verdict with the longer wait.
func (v verdict) longer(w verdict) verdict {
	if w.wait > v.wait || w.borrowed && w.wait >= v.wait {
		return w
	}
	return v
}

// Enter decides about a call, up to its wait if it has one.
func (m *Model) Enter(c *Call) {
	m.arrive(c)
	for _, b := range m.watching(c.Resource) {
		c.watchers = append(c.watchers, watcher{b, b.Rule.Mode == spec.Enforce})
	}
	v := m.decide(c)
	switch {
	case v.refused != nil:
		m.refuse(c, v.refused)
	case !c.waits:
		m.pass(c)
	case c.Left < v.wait || c.Left <= 0:
		if v.by == nil {
			v.by = c.queued.by
		}
		m.refuse(c, v.by)
	default:
		c.State, c.Wait, c.wake, c.By = Waiting, v.wait, m.now+int64(v.wait), v.by
		if v.by == nil {
			c.By = c.queued.by
		}
		if v.borrowed {
			c.borrowed = true
			for _, w := range m.windows {
				w.move(c, c.wake)
			}
		}
	}
}

// arrive records an arriving call, and the nodes that it creates.
func (m *Model) arrive(c *Call) {
	c.began = m.now
	c.place()
	m.calls = append(m.calls, c)
	m.entered[c.Resource] = true
	m.match(c.Resource)
	if p := cluster(c.Resource); !m.places[p] {
		m.places[p] = true
		if m.ruled(c.Resource) {
			m.apply()
		}
	}
	for _, p := range c.nodes {
		m.places[p] = true
	}
}

// ruled reports whether any rule applies to a resource.
func (m *Model) ruled(resource string) bool {
	return len(about(m, m.set.Hotspot, resource))+len(about(m, m.set.Flow, resource))+
		len(about(m, m.set.Isolation, resource))+len(about(m, m.set.Breaker, resource)) > 0
}

// Ask returns the first rule that would refuse a call, or nil if none would.
func (m *Model) Ask(c *Call) *By {
	c.place()
	return m.ask(c).refused
}

// Refused records that a rule has refused a call, even if the model would admit it.
func (m *Model) Refused(c *Call, kind core.Kind, id string) {
	m.arrive(c)
	m.refuse(c, m.by(kind, id))
}

// decide asks every enforced rule, checks whether the call could wait as long as they require, and
// then lets every rule take, family by family.
func (m *Model) decide(c *Call) verdict {
	asked := m.ask(c)
	switch {
	case asked.refused != nil:
		return asked
	case asked.wait > 0 && c.Left < asked.wait:
		return verdict{refused: asked.by}
	}
	taken := m.take(c)
	if taken.refused == nil {
		m.watch(c)
	}
	return taken
}

// ask returns the first refusal, in the order of the families and then as declared, or else the
// longest wait. Each rule is asked as if there were no other; it takes nothing.
func (m *Model) ask(c *Call) (longest verdict) {
	if by := m.unlisted(c, spec.Enforce); len(by) > 0 {
		return verdict{refused: by[0]}
	}
	if c.Inbound {
		for _, r := range m.set.System {
			if r.Mode == spec.Enforce && !m.askSystem(c, r) {
				return verdict{refused: m.by(core.KindSystem, r.ID)}
			}
		}
	}
	for _, v := range m.valuedOf(c.Resource, spec.Enforce) {
		if by := v.ask(m, c); by != nil { // the wait of a value is known when it takes
			return verdict{refused: by}
		}
	}
	for _, l := range m.of(c.Resource) {
		if l.rule.Mode != spec.Enforce || !m.applies(l, c) {
			continue
		}
		wait, ok := m.fits(l, c)
		if !ok {
			return verdict{refused: l.by()}
		}
		if wait > longest.wait {
			longest = verdict{wait: wait, by: l.by()}
		}
	}
	if r := m.tightest(c.Resource); r != nil && !m.lineOf(c.Resource).mayJoin(c, r.Threshold, r.MaxQueue) {
		return verdict{refused: m.by(core.KindIsolation, r.ID)}
	}
	if by := m.Refuser(c); by != nil {
		return verdict{refused: by}
	}
	return longest
}

// take lets the rules take units. In each family, rules that only look come first, then rules for
// few calls before rules for all, and among these the scarcest first.
func (m *Model) take(c *Call) (longest verdict) {
	if c.Inbound {
		for _, l := range m.systemTakers() {
			if v := m.takeOf(l, c); v.refused != nil {
				return v
			}
		}
	}
	for _, x := range m.valuedOf(c.Resource, spec.Enforce) {
		v := x.take(m, c)
		if v.refused != nil {
			return v
		}
		longest = longest.longer(v)
	}
	takers := m.of(c.Resource)
	slices.SortStableFunc(takers, func(a, b *limiter) int {
		return cmp.Or(a.breadth()-b.breadth(), cmp.Compare(a.abundance(), b.abundance()))
	})
	for _, l := range takers {
		if l.shadow() || !m.applies(l, c) {
			continue
		}
		v := m.takeOf(l, c)
		if v.refused != nil {
			return v
		}
		if v.borrowed {
			c.firm = max(c.firm, m.now+int64(v.wait))
		}
		longest = longest.longer(v)
	}
	for _, l := range takers { // a borrowing call counts there too, for every kind of rule
		if longest.borrowed && !l.shadow() && l.rule.Relation == flow.Chain && l.rule.Ref == c.Context && l.meters() && l.own.all() {
			m.windowOf(l, c)
		}
	}
	if r := m.tightest(c.Resource); r != nil && !m.join(c, r) {
		return verdict{refused: m.by(core.KindIsolation, r.ID)}
	}
	c.waits = longest.wait > 0 || c.queued != nil
	if !c.waits {
		if by := m.admit(c); by != nil {
			return verdict{refused: by}
		}
	}
	return longest
}

// watch lets shadow rules decide about a call that all others have admitted.
func (m *Model) watch(c *Call) {
	for _, by := range m.unlisted(c, spec.Shadow) {
		by.ShadowBlocked++
	}
	if c.Inbound {
		for _, r := range m.set.System {
			if r.Mode == spec.Shadow && !m.takeSystem(c, r) {
				m.by(core.KindSystem, r.ID).ShadowBlocked++
			}
		}
	}
	for _, x := range m.valuedOf(c.Resource, spec.Shadow) {
		x.watch(m, c)
	}
	for _, l := range m.of(c.Resource) {
		if l.shadow() && m.applies(l, c) && m.takeOf(l, c).refused != nil {
			l.ShadowBlocked++
		}
	}
	for _, l := range m.lines {
		if l.resource == c.Resource {
			m.rehearse(c, l)
		}
	}
	if !c.waits {
		m.watchBreakers(c)
	}
}

// refuse removes every trace of a call except its block.
func (m *Model) refuse(c *Call, by *By) {
	c.State, c.at, c.By = Blocked, max(c.began, m.now), by
	by.Refused++
	m.leaveTurns(c)
	for _, l := range m.rules {
		if l.bucket != nil {
			l.bucket.giveBack(c, m.now)
		}
	}
	for _, w := range m.windows {
		w.remove(c)
	}
	for _, f := range slices.Backward(c.undo) {
		f()
	}
	m.release(c)
}

// release returns the semaphore units that a call holds.
func (m *Model) release(c *Call) {
	for _, g := range m.semaphores {
		delete(g.holders, c)
		g.leave(c)
		g.advance()
	}
}

// Wake returns when a waiting call wakes next, as things stand: at its turn, or when its time in
// the queue for a permit runs out.
func (c *Call) Wake() int64 {
	if c.queued == nil || c.wake > c.began && c.State == Waiting && !c.queued.attended {
		return c.wake
	}
	return c.queued.until
}

// Granted reports whether a waiting call holds the permit that it waits for.
func (c *Call) Granted() bool { return c.queued == nil || c.queued.granted }

// Look handles a call that wakes after sleeping until slept, though the clock may not show it.
func (m *Model) Look(c *Call, slept int64) {
	for _, x := range c.turns {
		x.look(m.now, max(m.now, slept))
	}
	m.rewake()
}

// Turned handles a call whose turn is due. It reports whether the call still waits for a permit.
func (m *Model) Turned(c *Call) bool {
	if c.queued == nil || c.queued.granted || c.queued.until <= m.now {
		return false
	}
	c.queued.attended = true
	return true
}

// Run handles a call whose wait has ended: it runs, unless it has no permit or a breaker refuses it
// now.
func (m *Model) Run(c *Call) {
	if !c.Granted() {
		m.refuse(c, c.queued.by)
		return
	}
	if by := m.admit(c); by != nil {
		m.refuse(c, by)
		return
	}
	m.pass(c)
	m.watchBreakers(c)
}

// Leave handles a call whose context ends while it waits.
func (m *Model) Leave(c *Call) {
	by := c.By
	if c.queued != nil && c.queued.attended {
		by = c.queued.by
	}
	m.refuse(c, by)
}

// pass counts a call that no rule has counted.
func (m *Model) pass(c *Call) {
	for _, x := range c.turns {
		x.come()
	}
	runs := max(c.wake, m.now)
	if !c.borrowed {
		runs = m.now
	}
	c.State, c.at = Running, max(c.began, m.now)
	for _, p := range c.nodes {
		for _, w := range m.windows {
			if w.on == p && w.owner.all() && w.of(c) == nil {
				w.see(m.now)
				w.add(&charge{call: c, bucket: min(max(w.number(runs), w.head()), w.head()+w.ahead()), units: c.Units})
			}
		}
		for _, g := range m.semaphores {
			if g.on == p && g.owner.all() {
				g.holders[c] = true
			}
		}
	}
}

// Exit ends a running call.
func (m *Model) Exit(c *Call, failed bool) {
	c.State, c.ended, c.failed = Done, max(c.at, m.now), failed
	m.release(c)
	for _, f := range c.atExit {
		f()
	}
	for _, g := range m.gates {
		g.complete(c)
	}
	for _, s := range c.stamps {
		s.breaker.end(c, m.now)
	}
}
