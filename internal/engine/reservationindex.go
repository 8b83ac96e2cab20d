package engine

// fewHeld is the number of a call's reservations up to which they are searched one by one.
const fewHeld = 32

// places indexes the reservations and completions of a call, if those are many: searching them for
// each rule would take time quadratic in their number.
type places struct {
	held      map[any]int // indexes of windows and semaphores in Invocation.held
	indexed   int         // number of held in it
	completed map[Completer]int
	left      int // number of Invocation.completions in it
}

// heldAt returns the reservation in a window or of a semaphore, for a call that holds many, or nil
// if there is none.
func (inv *Invocation) heldAt(what any) *Reservation {
	p := inv.indexes()
	for ; p.indexed < len(inv.held); p.indexed++ {
		switch r := &inv.held[p.indexed]; {
		case r.window != nil:
			p.held[r.window] = p.indexed
		case r.semaphore != nil:
			p.held[r.semaphore] = p.indexed
		}
	}
	i, ok := p.held[what]
	if !ok || i >= len(inv.held) {
		return nil
	}
	if r := &inv.held[i]; any(r.window) == what || any(r.semaphore) == what {
		return r
	}
	return nil
}

// Left returns the call's completion with a completer, or nil if there is none.
func (inv *Invocation) Left(c Completer) *Completion {
	if len(inv.completions) <= fewHeld {
		for i := range inv.completions {
			if inv.completions[i].Completer == c {
				return &inv.completions[i]
			}
		}
		return nil
	}
	p := inv.indexes()
	for ; p.left < len(inv.completions); p.left++ {
		p.completed[inv.completions[p.left].Completer] = p.left
	}
	if i, ok := p.completed[c]; ok {
		return &inv.completions[i]
	}
	return nil
}

func (inv *Invocation) indexes() *places {
	if inv.index == nil {
		inv.index = &places{held: make(map[any]int), completed: make(map[Completer]int)}
	}
	return inv.index
}

// forgetHeld drops all but the first n reservations from the index.
func (inv *Invocation) forgetHeld(n int) {
	if inv.index != nil {
		inv.index.indexed = min(inv.index.indexed, n)
	}
}
