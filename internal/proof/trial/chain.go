package trial

import (
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// Chain returns the standard chain of an engine without a Guard, for slots with the roles of the
// engine.
func Chain() *engine.Chain { return (*engine.Chain)(slots.Default()) }

// Slot returns one of the slots of [Chain], by its name.
func Slot(name string) engine.Slot {
	for _, s := range Chain().Slots() {
		if s.Name() == name {
			return s
		}
	}
	panic("no slot " + name)
}

// AskOnly is a function used as an [engine.Checker] that takes nothing. It returns the verdict,
// which must not be a wait. It may run twice for one call, as Ask and as Take.
type AskOnly func(*engine.Invocation) engine.Verdict

// Ask calls the function.
func (f AskOnly) Ask(inv *engine.Invocation) engine.Verdict { return f(inv) }

// Take calls the function.
func (f AskOnly) Take(inv *engine.Invocation) engine.Verdict { return f(inv) }

// Direct returns true: the function takes nothing, so asking first would save nothing.
func (f AskOnly) Direct() bool { return true }
