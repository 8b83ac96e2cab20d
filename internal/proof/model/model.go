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

// Config is the engine's, as far as it matters.
type Config struct {
	Now      int64
	Interval time.Duration // of the second window; 0 means a second
	Buckets  int           // of that; 0 means 2
	Occupy   time.Duration // for how long a call that borrows may wait; 0 means 500 ms
	Direct   bool          // there are no slots beside the families
}

// Model is an engine once more, for one caller at a time.
type Model struct {
	config     Config
	now        int64
	revision   uint64 // of the rules
	calls      []*Call
	windows    []*window
	semaphores []*semaphore
	set        rules.Set
	rules      []*limiter           // of flow and system rules, as declared; what is off has one only if it was on
	values     []*valued            // hotspot rules at work
	gates      []*gate              // system rules that look at the machine
	lines      []*line              // isolation rules in shadow mode
	breakers   []*Breaker           // of the rules, for the resources that are there
	tallies    map[ruleKey]*Figures // of the rules
	entered    map[string]bool      // resources that a call has asked for
	places     map[place]bool       // nodes that calls have made, or rules that hold and name them
	patterns   map[string]*regexp.Regexp
	changes    []Change // of breakers, that nobody has asked for
	pending    pending
	load, cpu  float64 // what the machine shows
}

// New returns a model of a guard without rules.
func New(config Config) *Model {
	config.Interval, config.Buckets = cmp.Or(config.Interval, time.Second), cmp.Or(config.Buckets, 2)
	config.Occupy = cmp.Or(config.Occupy, 500*time.Millisecond)
	return &Model{
		config: config, now: config.Now, entered: make(map[string]bool),
		places:   map[place]bool{inboundRoot: true, cluster(node.OverflowName): true}, // which are always there
		revision: 1,                                                                   // a guard begins by loading no rules
		patterns: make(map[string]*regexp.Regexp), load: -1, cpu: -1, pending: makePending(),
	}
}

// Advance has time pass. A clock that is set back is no time.
func (m *Model) Advance(to int64) { m.now = max(m.now, to) }

// Machine says what the machine shows from now on.
func (m *Model) Machine(load, cpu float64) { m.load, m.cpu = load, cpu }

type ruleKey struct {
	kind core.Kind
	id   string
}

// Figures are the calls that a rule has refused, or in shadow mode would have.
type Figures struct{ Refused, ShadowBlocked int64 }

// Figures are those of a rule.
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
	// again says when a call of one unit may come again; false if that is not looked at.
	again func(c *Call) (wait time.Duration, known, looked bool)
}

func (m *Model) by(kind core.Kind, id string) *By {
	f := m.tallies[ruleKey{kind, id}]
	if f == nil { // of a rule that is gone, under which a call still waits
		f = new(Figures)
	}
	return &By{Kind: kind, ID: id, Figures: f}
}

// place is a node: a resource's, or one of its calls' or of a caller's.
type place struct{ kind, resource, name string }

func cluster(resource string) place { return place{kind: "cluster", resource: resource} }

var inboundRoot = place{kind: "inbound"}

// State is what has become of a call.
type State int

// The states of a call.
const (
	Asking State = iota
	Waiting
	Running
	Done
	Blocked
)

// Call is a call and what becomes of it. The first fields are the caller's.
type Call struct {
	Resource, Context, Origin string // the context "" is the default one
	Units                     int64  // at least 1
	Inbound, Prioritized      bool
	Params                    map[string][]any
	Args                      []any
	Left                      time.Duration // until its deadline, 0 if it has come or the context has ended; Endless if there is none
	Neutral                   bool          // its end says nothing of the resource; the caller knows by Exit

	State State
	By    *By           // the rule that it waits for, or that refused it
	Wait  time.Duration // that it was told, 0 if it waits for a permit alone

	nodes    []place // on which it counts
	began    int64
	at       int64 // passed, or was refused
	ended    int64
	failed   bool
	borrowed bool
	waits    bool     // some rule has it wait
	wake     int64    // of a call that waits for turns, as things stand
	firm     int64    // and not before, whatever becomes of its turns
	turns    []*turn  // in queues
	queued   *waiter  // its place in an isolation rule's queue
	undo     []func() // gives back what else it took, if it is refused after all
	atExit   []func()
	watchers []watcher
	stamps   []stamp // of the breakers that let it in
}

// Endless is how long is left to a call without a deadline.
const Endless = time.Duration(math.MaxInt64)

// place finds the nodes on which a call counts.
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

// verdict is what a rule says: refused by a rule, or go after a wait.
type verdict struct {
	refused  *By
	wait     time.Duration
	by       *By
	borrowed bool
}

// longer is the verdict that has the call wait longer.
func (v verdict) longer(w verdict) verdict {
	if w.wait > v.wait || w.borrowed && w.wait >= v.wait {
		return w
	}
	return v
}

// Enter is a call that asks, up to its wait if it has one.
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

// arrive notes a call that comes, and the nodes that it makes.
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

// ruled reports whether any rule is about a resource.
func (m *Model) ruled(resource string) bool {
	return len(about(m, m.set.Hotspot, resource))+len(about(m, m.set.Flow, resource))+
		len(about(m, m.set.Isolation, resource))+len(about(m, m.set.Breaker, resource)) > 0
}

// Ask is the first rule that would refuse a call, nil if none would.
func (m *Model) Ask(c *Call) *By {
	c.place()
	return m.ask(c).refused
}

// Refused is a call that a rule has refused, whatever the model says.
func (m *Model) Refused(c *Call, kind core.Kind, id string) {
	m.arrive(c)
	m.refuse(c, m.by(kind, id))
}

// decide asks every rule that holds, looks whether the call could wait for as long as
// they say, and then lets every rule take, family by family.
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

// ask is the first refusal of a rule, in the order of the families and then as declared, or else
// the longest wait. Each rule is asked as if there were no other; it takes nothing.
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
		if by := v.ask(m, c); by != nil { // how long a value waits is known when it takes
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

// take lets the rules take: in each family those that only look first, those of few
// calls before those of all, and of those the scarcest.
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
	for _, l := range takers { // a call that borrows counts there too, whoever's calls the rule is about
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

// watch lets the rules in shadow mode decide on a call that all others have let pass.
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

// refuse leaves no trace of a call but its own block.
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

// release has a call give back what it holds of semaphores.
func (m *Model) release(c *Call) {
	for _, g := range m.semaphores {
		delete(g.holders, c)
		g.leave(c)
		g.advance()
	}
}

// Wake is when a call that waits wakes next, as things stand: for its turn, or since its time in the
// queue for a permit is over.
func (c *Call) Wake() int64 {
	if c.queued == nil || c.wake > c.began && c.State == Waiting && !c.queued.attended {
		return c.wake
	}
	return c.queued.until
}

// Granted reports whether a call that waits holds the permit that it waits for.
func (c *Call) Granted() bool { return c.queued == nil || c.queued.granted }

// Look is a call that wakes, having slept until then, though the clock may not show it.
func (m *Model) Look(c *Call, slept int64) {
	for _, x := range c.turns {
		x.look(m.now, max(m.now, slept))
	}
	m.rewake()
}

// Turned is a call whose turn has come. It reports whether it waits on, for a permit.
func (m *Model) Turned(c *Call) bool {
	if c.queued == nil || c.queued.granted || c.queued.until <= m.now {
		return false
	}
	c.queued.attended = true
	return true
}

// Run is a call whose wait is over: it runs, unless it has got no permit or a breaker refuses it now.
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

// Leave is a call whose context ends while it waits.
func (m *Model) Leave(c *Call) {
	by := c.By
	if c.queued != nil && c.queued.attended {
		by = c.queued.by
	}
	m.refuse(c, by)
}

// pass counts a call where no rule has done so.
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

// Exit ends a call that runs.
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
