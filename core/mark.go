package core

// Mark is what a slot leaves on a call to find it again when the call completes: by
// then what was reserved is back, and the rules may be others. Marks of a call that
// is refused after all are dropped.
type Mark struct {
	Owner any   // whose mark it is; a pointer, so that it costs no allocation
	Token int64 // the owner's own
}

// Mark leaves a mark.
func (inv *Invocation) Mark(owner any, token int64) {
	inv.marks = append(inv.marks, Mark{owner, token})
}

// Marks are those left so far, in order. They may be changed in place.
func (inv *Invocation) Marks() []Mark { return inv.marks }
