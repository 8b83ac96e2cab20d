package core

import "time"

// Leak is a call that has not exited for at least LeakAfter of api.Config.
type Leak struct {
	Resource string
	Age      time.Duration // since it was admitted
	// Stack is the code that made the call, innermost frame first, as in a panic: "function", and
	// on the next line, indented, "file:line". The frames of package api and below are left out.
	Stack string
}
