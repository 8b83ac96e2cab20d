package engine

// Completer is notified when an admitted call ends.
type Completer interface {
	// Complete receives the token passed to [Invocation.OnComplete]. By then the call's
	// reservations have been given back, and other rules may be in force.
	Complete(inv *Invocation, token int64)
}

// Completion is a pending notification of a call.
type Completion struct {
	Completer Completer
	Token     int64 // of the completer
}

// OnComplete makes the engine notify a completer at the end of the call, if the call is admitted. A
// completer that is a pointer costs no allocation.
func (inv *Invocation) OnComplete(c Completer, token int64) {
	inv.completions = append(inv.completions, Completion{c, token})
}

// Completions returns the pending notifications in order. They may be changed in place.
func (inv *Invocation) Completions() []Completion { return inv.completions }
