package slots

import "github.com/penstock-go/penstock/internal/engine"

// Chain holds the slots in order. It is immutable, and safe for concurrent use.
type Chain engine.Chain

// NewChain returns a chain of slots in the given order: custom slots and the library's, which are
// the Slots of [Default]. It panics if a slot plays no role or two have the same name: a chain is
// written in code, not read as input.
func NewChain(slots ...Slot) *Chain {
	parts := make([]engine.Slot, len(slots))
	for i, s := range slots {
		parts[i] = parted(s)
	}
	return (*Chain)(engine.NewChain(parts...))
}

// Position is the position at which [Chain.With] inserts a slot.
type Position engine.Position

// Before returns the position right before the named slot.
func Before(slot string) Position { return Position(engine.Before(slot)) }

// After returns the position right after the named slot.
func After(slot string) Position { return Position(engine.After(slot)) }

// With returns a new chain with one more slot. It panics if there is no slot of that name.
func (c *Chain) With(s Slot, where Position) *Chain {
	return (*Chain)((*engine.Chain)(c).With(parted(s), engine.Position(where)))
}

// Replace returns a new chain with s in place of the slot of the same name. It panics if there is
// no such slot.
func (c *Chain) Replace(s Slot) *Chain { return (*Chain)((*engine.Chain)(c).Replace(parted(s))) }

// Slots returns the slots in order.
func (c *Chain) Slots() []Slot {
	var slots []Slot
	for _, s := range (*engine.Chain)(c).Slots() {
		if p, ok := s.(*engine.Parts); ok {
			s = p.Slot
		}
		slots = append(slots, s)
	}
	return slots
}

// Names returns the names of the slots in order.
func (c *Chain) Names() []string { return (*engine.Chain)(c).Names() }
