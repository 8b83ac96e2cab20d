package core

import (
	"fmt"
	"slices"
)

// Chain is the slots in their order, sorted by role. It doesn't change once
// built.
type Chain struct {
	slots     []Slot
	preparers []Preparer
	checking  []checkingSlot
	passed    []PassRecorder
	blocked   []BlockRecorder
	completed []CompleteRecorder
}

// checkingSlot is a slot that checks calls: a family's, or a user's own slot.
type checkingSlot struct {
	name      string
	kind      Kind // of the family; KindNone of others
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
		if !c.enlist(s) {
			panic(fmt.Sprintf("penstock: slot %q plays no role: give it a method of Preparer, Checker, Rechecker or one of the recorders", s.Name()))
		}
	}
	return c
}

func (c *Chain) enlist(s Slot) bool {
	n := 0
	n += enlist(&c.preparers, s)
	n += c.enlistChecking(s)
	n += enlist(&c.passed, s)
	n += enlist(&c.blocked, s)
	n += enlist(&c.completed, s)
	return n > 0
}

func (c *Chain) enlistChecking(s Slot) int {
	family, _ := s.(FamilySlot)
	slot := checkingSlot{name: s.Name(), kind: Kind(family)}
	slot.checker, _ = s.(Checker)
	slot.rechecker, _ = s.(Rechecker)
	if slot.kind == KindNone && slot.checker == nil && slot.rechecker == nil {
		return 0
	}
	c.checking = append(c.checking, slot)
	return 1
}

// in is what the slot is under the rules of a binding: whether it judges calls, and whether
// it has rules in shadow mode.
func (s checkingSlot) in(b *binding) (slot checkingSlot, holds bool, shadows ShadowChecker) {
	if s.kind != KindNone {
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

func enlist[Role any](list *[]Role, s Slot) int {
	role, ok := s.(Role)
	if !ok {
		return 0
	}
	*list = append(*list, role)
	return 1
}

// Position says where [Chain.With] puts a slot.
type Position struct {
	slot  string
	after bool
}

// Before is the place right before the named slot.
func Before(slot string) Position { return Position{slot: slot} }

// After is the place right after the named slot.
func After(slot string) Position { return Position{slot: slot, after: true} }

// With returns a new chain with one more slot. It panics if there is no slot of
// that name.
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

// Slots are the slots in order.
func (c *Chain) Slots() []Slot { return slices.Clone(c.slots) }

// Names are the names of the slots in order.
func (c *Chain) Names() []string {
	names := make([]string, len(c.slots))
	for i, s := range c.slots {
		names[i] = s.Name()
	}
	return names
}
