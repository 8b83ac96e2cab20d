package engine

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
)

// # How a resource gets its rules
//
// The state of rules (windows, queues, values, breakers) is kept at the resource they apply to,
// where each rule set passes it on to the next, once. An update prepares every known resource for
// the next set, one by one, and then publishes the set with a single store. Until then, all calls
// use the current set; from then on all use the next one, regardless of their resource. So a
// decision is made under one set, and no later decision under an earlier set.
//
//   - No call waits for a load. A call that finds its resource bound to the set in force takes no
//     lock; a resource is prepared without a lock; and under the lock of a single resource
//     ([Resource.mu]) only the rules of that resource are bound, which the call would otherwise do
//     itself.
//   - Prepared state is handed over while calls still use the current set. Windows and queues that
//     those calls take from pass that on to the next set (see flow, succession).
//   - Preparing needs no lock because nothing else continues from the held state: a binding of the
//     current set is built again with the same controllers. A resource that is further behind,
//     such as one that has just returned, is left to its next call, or to the update once it has
//     published.
//   - If rules of the current set are bound after a resource was prepared, because it is new or was
//     pending, the prepared part is built again from the current state, by the next call or by the
//     update once it has published. State that was handed over is not handed over again: calls
//     under way may have taken from both, and give back to both.
//   - A call that binds reads the set in force under the resource's lock. So nothing of an older set
//     is built at a resource once the resource uses the next set.
//   - Expressions that are new in a set are matched by the next call, because matching takes long
//     and most names may never be called again: until then the resource is pending. But a name
//     with a queued call is matched by the update, since there may be no further call to bring the
//     queue up to date.
//   - The update doesn't find a resource that has left the registry. When the resource returns, its
//     state is matched to rules by their IDs.

// prepared is the binding of a resource for the next set.
type prepared struct {
	set   *Snapshot   // nil if nothing is prepared
	b     *binding    // nil if it must be built again
	built map[any]any // controllers, by their predecessors
}

// lookUp returns the rules in force for a resource under that name, at a time. called is true if a
// call looks them up, and false for a reader.
func (e *Engine) lookUp(r *Resource, name string, now int64, called bool) *binding {
	if r == e.resources.overflow {
		return e.lookUpBeyond(name, now, called)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	set := e.rules.Load()
	last := r.turnLocked(set)
	if last != nil && last.set == set {
		return last
	}
	b := e.bindLocked(set, r, last, search{name: name, matched: set.match(name, last), called: called}, r.built(set), now)
	r.rebind(set, b)
	return b
}

// built returns the controllers that were prepared for a set, or nil if there are none. It needs
// mu.
func (r *Resource) built(set *Snapshot) map[any]any {
	if r.next.set == set {
		return r.next.built
	}
	return nil
}

// rebind stores the binding of a set. Anything prepared for the next set doesn't include these
// controllers. It needs mu.
func (r *Resource) rebind(set *Snapshot, b *binding) {
	r.bound.Store(b)
	if r.next.b = nil; r.next.set == set {
		r.next = prepared{}
	}
}

// turnLocked puts the binding prepared for a set into force, and returns the current binding. The
// caller holds the resource's lock.
func (r *Resource) turnLocked(set *Snapshot) *binding {
	if r.next.set == set && r.next.b != nil {
		r.rebind(set, r.next.b)
	}
	return r.bound.Load()
}

// lookUpBeyond returns the rules for a name beyond the cap. The calls share a node and its limits,
// but each is subject to the rules of its own name. So each call looks up its rules, and matches
// them before it takes the lock that all of these calls contend for.
func (e *Engine) lookUpBeyond(name string, now int64, called bool) *binding {
	for {
		set := e.rules.Load()
		s := search{name: name, matched: set.match(name, nil), called: called}
		if b := e.bindBeyond(set, s, now); b != nil {
			return b
		}
	}
}

// bindBeyond returns nil if the set is no longer in force.
func (e *Engine) bindBeyond(set *Snapshot, s search, now int64) *binding {
	r := e.resources.overflow
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.rules.Load() != set {
		return nil
	}
	last := r.turnLocked(set)
	b := e.bindLocked(set, r, last, s, r.built(set), now)
	if last == nil || !slices.Equal(last.held, b.held) {
		r.rebind(set, &binding{revision: set.Revision, held: b.held})
	}
	return b
}

// prepare builds the binding of a resource for a set that is about to be published, from its
// current binding. A resource that no call has asked for yet and no rule names gets its rules with
// the first call.
func (e *Engine) prepare(set *Snapshot, r *Resource, named bool, now int64) {
	last := r.bound.Load()
	if last == nil && !named || last != nil && last.revision+1 != set.Revision {
		return
	}
	built := make(map[any]any)
	b := e.handOver(set, r, last, built, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bound.Load() != last {
		b = nil // it doesn't include later bindings
	}
	r.next = prepared{set, b, built}
}

// settle binds a resource to a set that was published, unless a call was quicker.
func (e *Engine) settle(set *Snapshot, r *Resource, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.turnLocked(set)
	switch {
	case last == nil || last.set == set:
		return
	case last.revision != set.Revision:
		last = e.handOver(set, r, last, r.built(set), now)
		r.rebind(set, last)
	}
	if last.set == nil && r != e.resources.overflow && r.queuesCalls() {
		r.rebind(set, e.bindLocked(set, r, last, search{name: r.Name(), matched: set.match(r.Name(), last)}, nil, now))
	}
}

// handOver turns the binding of a resource into one of the next set. It matches nothing.
func (e *Engine) handOver(set *Snapshot, r *Resource, last *binding, built map[any]any, now int64) *binding {
	switch {
	case r == e.resources.overflow: // no expression applies to its own name
		b := e.bindLocked(set, r, last, search{name: r.Name()}, built, now)
		return &binding{revision: set.Revision, held: b.held}
	case last.matchedUpTo() < set.latest:
		return e.bindLocked(set, r, last, search{name: r.Name(), matched: set.known(last), pending: true}, built, now)
	}
	return e.bindLocked(set, r, last, search{name: r.Name(), matched: set.match(r.Name(), last)}, built, now)
}

// queuesCalls reports whether a call is in a queue of the resource. A call that takes a place there
// looks up the rules in force afterwards (see [Engine.reload]), so either that call finds that the
// resource is pending, or the update finds the call.
func (r *Resource) queuesCalls() bool {
	for _, g := range r.Meters().Semaphores() {
		if g.All() && g.Queued() > 0 { // a shadow rule never queues calls
			return true
		}
	}
	return false
}

// reload brings the resource of a call that waits, or has waited, up to the rules in force: the
// queue that the call is in, and the windows in which it is counted when it runs. The call itself
// keeps the rules that it found.
func (e *Engine) reload(inv *Invocation) {
	r := inv.resource
	if b := r.bound.Load(); r != e.resources.overflow && (b == nil || b.set != e.rules.Load()) {
		e.lookUp(r, r.Name(), inv.now, true)
	}
}

// search is the state of looking up the rules for a name.
type search struct {
	name    string
	matched [kinds]pattern.Matched
	pending bool // incomplete: the name is still to be matched
	called  bool // a call looks for them
	looks   bool // the result decides on no call; see Binding.Looks
}

// match finds the expressions of all families that match a name. last, which may be nil, is the
// previous binding: its matches need not be repeated.
func (s *Snapshot) match(name string, last *binding) (matched [kinds]pattern.Matched) {
	for kind, family := range s.families {
		if family != nil {
			matched[kind] = family.Match(name, last.heldBy(core.Kind(kind)), last.matchedUpTo())
		}
	}
	return matched
}

// known is like match, but returns only earlier matches.
func (s *Snapshot) known(last *binding) (matched [kinds]pattern.Matched) {
	for kind, family := range s.families {
		if family != nil {
			matched[kind] = family.Known(last.heldBy(core.Kind(kind)), last.matchedUpTo())
		}
	}
	return matched
}

// bindLocked builds the controllers of a set's rules at a resource from the state held there, and
// hands over. built may be nil; see prepared. The caller holds the resource's lock, or is prepare.
func (e *Engine) bindLocked(set *Snapshot, r *Resource, last *binding, s search, built map[any]any, now int64) *binding {
	b := &binding{set: set, revision: set.Revision, known: set.Revision}
	var sites []*Binding
	ruled := false
	for kind, family := range set.families {
		if family == nil {
			continue
		}
		at := &Binding{
			Resource: r, Now: now, Held: last.heldBy(core.Kind(kind)), Name: s.name, Matched: s.matched[kind], Pending: s.pending,
			Asked: s.called || r.Entered(), Looks: s.looks, built: built,
		}
		b.rules[kind] = family.Bind(at)
		ruled = ruled || b.rules[kind] != nil
		if at.Held != nil {
			b.held = append(b.held, kept{core.Kind(kind), at.Held})
		}
		if at.last != nil && !s.looks {
			sites = append(sites, at)
		}
	}
	for _, at := range sites { // once everything is built
		at.HandOver(now)
	}
	switch {
	case s.pending:
		r.remember(now)
		return set.pendingBinding(b.held, last.matchedUpTo())
	case last != nil && last.set == nil:
		r.forget()
	}
	if !ruled && b.held == nil {
		return set.bare
	}
	return e.chain.bind(b)
}

// remember makes the windows of a pending resource begin at now, the time of the load, although the
// next call makes them. A call that waited looks up the rules before it runs (see [Engine.reload]),
// so until then only calls that were under way during the load are counted there.
func (r *Resource) remember(now int64) {
	for _, n := range nodesOf(r) {
		n.Remember(now)
	}
}

// forget is called when the windows are made, before others can see them, so that the next load
// remembers again.
func (r *Resource) forget() {
	for _, n := range nodesOf(r) {
		n.Forget()
	}
}

// pendingBinding is the binding of a resource whose name is still to be matched. Most such
// resources hold nothing and share one. Only updates call this, one at a time.
func (s *Snapshot) pendingBinding(held []kept, known uint64) *binding {
	if held != nil {
		return &binding{revision: s.Revision, held: held, known: known}
	}
	if s.pending == nil || s.pending.known != known {
		s.pending = &binding{revision: s.Revision, known: known}
	}
	return s.pending
}
