package engine

// Completer is told when a call ends that it let in.
type Completer interface {
	// Complete is passed the token that was left with [Invocation.OnComplete]. By then what the
	// call held has been given back, and other rules may be in force.
	Complete(inv *Invocation, token int64)
}

// Completion is what a call leaves for its end.
type Completion struct {
	Completer Completer
	Token     int64 // the completer's own
}

// OnComplete makes the engine call a completer at the end of the call, if the call is admitted
// after all. A completer that is a pointer costs no allocation.
func (inv *Invocation) OnComplete(c Completer, token int64) {
	inv.completions = append(inv.completions, Completion{c, token})
}

// Completions are those left so far, in order. They may be changed in place.
func (inv *Invocation) Completions() []Completion { return inv.completions }
