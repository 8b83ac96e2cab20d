package core

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
// builder. If it fails or panics, nothing has changed. Updates run one after the
// other. Calls go by the old rules until the new ones are published; those of
// resources whose rules are not found yet wait until then: build must make none.
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
