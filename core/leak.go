package core

import "time"

// Leak is a call that has not exited for at least LeakAfter of api.Config.
type Leak struct {
	Resource string
	Age      time.Duration // since it was admitted
	// Stack is the code that made the call, innermost first, as in a panic: "function", and on the
	// next line, indented, "file:line". Frames of package api, and of what is below
	// it, come first and are left out.
	Stack string
}
