package trial

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/slots"
)

// Chain is the standard chain of an engine without a Guard, for slots with the roles of the engine.
func Chain() *core.Chain { return (*core.Chain)(slots.Default()) }

// Slot is one of the slots of [Chain], by its name.
func Slot(name string) core.Slot {
	for _, s := range Chain().Slots() {
		if s.Name() == name {
			return s
		}
	}
	panic("no slot " + name)
}
