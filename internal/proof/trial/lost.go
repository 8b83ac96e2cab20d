package trial

import "github.com/penstock-go/penstock/internal/engine"

// Lost is a slot that should find nodes, and panics.
type Lost struct{}

// Name is "lost".
func (Lost) Name() string { return "lost" }

// Prepare panics.
func (Lost) Prepare(*engine.Invocation) { panic("lost") }
