package core

// Completer hears of the end of a call that it let in.
type Completer interface {
	// Complete is told the token that was left with [Invocation.OnComplete]. By then what
	// the call held has been given back, and other rules may be in force.
	Complete(inv *Invocation, token int64)
}

// Completion is what a call leaves for its end.
type Completion struct {
	Completer Completer
	Token     int64 // the completer's own
}

// OnComplete has a completer hear of the end of the call, if that is admitted after all. A
// completer that is a pointer costs no allocation.
func (inv *Invocation) OnComplete(c Completer, token int64) {
	inv.completions = append(inv.completions, Completion{c, token})
}

// Completions are those left so far, in order. They may be changed in place.
func (inv *Invocation) Completions() []Completion { return inv.completions }
