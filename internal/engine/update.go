package engine

import (
	"github.com/penstock-go/penstock/core"
)

// SnapshotBuilder collects the families of the next revision.
type SnapshotBuilder struct {
	Engine *Engine
	// Sharing connects families with the limits shared with other processes, or is nil; see
	// family.Compile. The engine doesn't use it.
	Sharing  any
	previous *Snapshot
	next     *Snapshot
	last     []func(now int64)
}

// Revision returns the number of the revision that is being built.
func (b *SnapshotBuilder) Revision() uint64 { return b.next.Revision }

// Previous returns the current compiled rules of the family, or nil.
func (b *SnapshotBuilder) Previous(kind core.Kind) Family { return b.previous.families[kind] }

// Compiled returns the compiled rules put for a family.
func (b *SnapshotBuilder) Compiled(kind core.Kind) Family { return b.next.families[kind] }

// Put sets the compiled rules of a family.
func (b *SnapshotBuilder) Put(kind core.Kind, family Family) { b.next.families[kind] = family }

// Attach puts v into force with the revision, and removes it with it, for readers of
// [Snapshot.Attached]: a value that decides on no call, but must be of the same revision as the
// rules.
func (b *SnapshotBuilder) Attach(v any) { b.next.attached = v }

// OnComplete makes the engine notify a completer at the end of every call while the revision is in
// force, regardless of the rules under which the call was admitted; its token is 0.
func (b *SnapshotBuilder) OnComplete(c Completer) { b.next.completers = append(b.next.completers, c) }

// BeforePublishing registers f to be called right before the next revision is published, when
// nothing can fail. Irreversible steps belong in f. f receives the time, and must not call custom
// code, such as the clock. For single resources, see [Binding.BeforeUse].
func (b *SnapshotBuilder) BeforePublishing(f func(now int64)) { b.last = append(b.last, f) }

// Update replaces the rules of the engine: build puts every family's rules into the builder. If it
// fails or panics, nothing has changed. Updates run one after another. Calls use the old rules
// until the new ones are published, and never wait: see bind.go.
//
// Names in the new rules are pinned before they are published, and names in the old ones only are
// released afterwards.
func (e *Engine) Update(build func(*SnapshotBuilder) error) error {
	e.updating.Lock()
	defer e.updating.Unlock()
	old := e.rules.Load()
	b := &SnapshotBuilder{Engine: e, previous: old, next: &Snapshot{Revision: old.Revision + 1}}
	published := false
	defer func() {
		if !published { // by an error, a panic or the end of the goroutine
			e.dropUnneeded(old, old.names())
		}
	}()
	if err := build(b); err != nil {
		return err
	}
	set := b.next
	names := set.complete(e.chain)
	e.pin(names)
	now := e.Now() // from here on no custom code is called, and nothing panics
	for _, f := range b.last {
		f(now)
	}
	set.bindHomes(now)
	for r := range e.resources.all() {
		e.prepare(set, r, names.named(r.Name()), now)
	}
	e.quotas.flush()
	e.rules.Store(set)
	published = true
	for r := range e.resources.all() {
		e.settle(set, r, now)
	}
	e.dropUnneeded(set, names)
	b.previous, b.last, set.pending = nil, nil, nil // a caller that keeps the builder keeps no earlier rules alive
	return nil
}

// complete derives the set's data from its families. It returns their names.
func (s *Snapshot) complete(chain *Chain) *Names {
	for _, family := range s.families {
		if family != nil {
			s.latest = max(s.latest, family.Latest())
		}
	}
	s.bare = chain.bind(&binding{set: s, revision: s.Revision, known: s.Revision})
	return s.names()
}
