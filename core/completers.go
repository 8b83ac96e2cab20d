package core

import "slices"

// completers are those who record the end of a call, by the sort of call.
type completers [sorts][]CompleteRecorder

// completers are those of the chain without the families that have no rules here: they
// have marked no call. There are few such lists, and all bindings share them.
func (e *Engine) completers(rules *[kinds]any) *completers {
	var ruled [kinds]bool
	for kind := range rules {
		ruled[kind] = rules[kind] != nil
	}
	if c := e.recorders[ruled]; c != nil {
		return c
	}
	c := completers(e.chain.completed)
	for s := range c {
		c[s] = slices.DeleteFunc(slices.Clone(c[s]), func(r CompleteRecorder) bool {
			family, ok := r.(FamilyChecker)
			if !ok || ruled[family.Kind()] {
				return false
			}
			some, ok := r.(Selective)
			return ok && some.Concerns() == MarkedCalls
		})
	}
	if e.recorders == nil {
		e.recorders = make(map[[kinds]bool]*completers)
	}
	e.recorders[ruled] = &c
	return &c
}
