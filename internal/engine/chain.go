package engine

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// Chain has the slots in order, sorted by role. It is immutable.
type Chain struct {
	slots     []Slot
	preparers []Preparer
	checking  []checkingSlot
	passed    []PassRecorder
	blocked   []BlockRecorder
	completed []CompleteRecorder
}

// checkingSlot is a slot that checks calls: a family's, or a custom slot.
type checkingSlot struct {
	name      string
	kind      core.Kind // of the family; KindNone for custom slots
	checker   Checker
	rechecker Rechecker
}

// NewChain returns a chain of slots in the given order. It panics if a slot plays no role or two
// have the same name: a chain is written in code, not read as input.
func NewChain(slots ...Slot) *Chain {
	c := &Chain{slots: slices.Clone(slots)}
	names := make(map[string]bool)
	for _, s := range slots {
		if names[s.Name()] {
			panic(fmt.Sprintf("penstock: two slots named %q in one chain", s.Name()))
		}
		names[s.Name()] = true
		if !c.enlist(partsOf(s)) {
			panic(fmt.Sprintf("penstock: slot %q plays no role: give it a method of Preparer, Checker, Rechecker or one of the recorders", s.Name()))
		}
	}
	return c
}

// Parts is a slot with an object for each role, nil for roles that it doesn't play.
type Parts struct {
	Slot
	Preparer  Preparer
	Checker   Checker
	Rechecker Rechecker
	Passed    PassRecorder
	Blocked   BlockRecorder
	Completed CompleteRecorder
}

// partsOf returns the roles of a slot, which plays them itself unless it is Parts.
func partsOf(s Slot) Parts {
	if p, ok := s.(*Parts); ok {
		return *p
	}
	p := Parts{Slot: s}
	p.Preparer, _ = s.(Preparer)
	p.Checker, _ = s.(Checker)
	p.Rechecker, _ = s.(Rechecker)
	p.Passed, _ = s.(PassRecorder)
	p.Blocked, _ = s.(BlockRecorder)
	p.Completed, _ = s.(CompleteRecorder)
	return p
}

// enlist adds a slot in all its roles, and reports whether it has any.
func (c *Chain) enlist(p Parts) bool {
	family, _ := p.Slot.(FamilySlot)
	checks := family != 0 || p.Checker != nil || p.Rechecker != nil
	if checks {
		c.checking = append(c.checking, checkingSlot{p.Name(), core.Kind(family), p.Checker, p.Rechecker})
	}
	if p.Preparer != nil {
		c.preparers = append(c.preparers, p.Preparer)
	}
	if p.Passed != nil {
		c.passed = append(c.passed, p.Passed)
	}
	if p.Blocked != nil {
		c.blocked = append(c.blocked, p.Blocked)
	}
	if p.Completed != nil {
		c.completed = append(c.completed, p.Completed)
	}
	return checks || p.Preparer != nil || p.Passed != nil || p.Blocked != nil || p.Completed != nil
}

// in resolves the slot under the rules of a binding: its checker, whether it decides on calls, and
// whether it has rules in shadow mode.
func (s checkingSlot) in(b *binding) (slot checkingSlot, holds bool, shadows ShadowChecker) {
	if s.kind != core.KindNone {
		s.checker = b.rules[s.kind]
		s.rechecker, _ = s.checker.(Rechecker)
	}
	holds = s.checker != nil
	if r, ok := s.checker.(ShadowChecker); ok {
		var shadow bool
		if holds, shadow = r.Modes(); shadow {
			shadows = r
		}
	}
	return s, holds, shadows
}

// checkingAt names the slot that a step of a stage belongs to.
func (c *Chain) checkingAt(b *binding, at stage, step int) string {
	if last := len(b.checkers) - len(b.sharers); at == wanting || at < shadowing && step >= last {
		if at != wanting {
			step -= last
		}
		return b.sharers[step].slot
	}
	for _, slot := range c.checking {
		slot, takesPart, shadows := slot.in(b)
		switch at {
		case shadowing:
			takesPart = shadows != nil
		case rechecking:
			takesPart = slot.rechecker != nil
		}
		if takesPart {
			if step == 0 {
				return slot.name
			}
			step--
		}
	}
	return ""
}

// Position determines where [Chain.With] inserts a slot.
type Position struct {
	slot  string
	after bool
}

// Before returns the position right before the named slot.
func Before(slot string) Position { return Position{slot: slot} }

// After returns the position right after the named slot.
func After(slot string) Position { return Position{slot: slot, after: true} }

// With returns a new chain with one more slot. It panics if there is no slot of that name.
func (c *Chain) With(s Slot, where Position) *Chain {
	i := slices.IndexFunc(c.slots, func(s Slot) bool { return s.Name() == where.slot })
	if i < 0 {
		panic(fmt.Sprintf("penstock: no slot %q in the chain: it has %q", where.slot, c.Names()))
	}
	if where.after {
		i++
	}
	return NewChain(slices.Insert(slices.Clone(c.slots), i, s)...)
}

// Replace returns a new chain with s in place of the slot of the same name. It panics if there is
// no such slot.
func (c *Chain) Replace(s Slot) *Chain {
	list, found := slices.Clone(c.slots), false
	for i := range list {
		if list[i].Name() == s.Name() {
			list[i], found = s, true
		}
	}
	if !found {
		panic(fmt.Sprintf("penstock: no slot %q in the chain: it has %q", s.Name(), c.Names()))
	}
	return NewChain(list...)
}

// Slots returns the slots in order.
func (c *Chain) Slots() []Slot { return slices.Clone(c.slots) }

// Names returns the names of the slots in order.
func (c *Chain) Names() []string {
	names := make([]string, len(c.slots))
	for i, s := range c.slots {
		names[i] = s.Name()
	}
	return names
}
