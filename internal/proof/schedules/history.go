//go:build sim

package schedules

import "fmt"

// History records operations on an object that should be linearizable; a model M follows the
// object's state.
type History[M any] struct {
	clock int
	ops   []operation[M]
}

type operation[M any] struct {
	name         func() string
	began, ended int
	replay       func(M) bool
}

// Do runs an operation and records it. do returns its name for reports, and a function that applies
// the operation to a model and reports whether the result is the same.
func (h *History[M]) Do(do func() (name func() string, replay func(M) bool)) {
	h.clock++
	began := h.clock
	name, replay := do()
	h.clock++
	h.ops = append(h.ops, operation[M]{name, began, h.clock, replay})
}

// Linearizable reports whether the operations give the same results in some serial order in which
// each operation precedes the operations that began after its end. clone copies a model.
func (h *History[M]) Linearizable(start M, clone func(M) M) bool {
	return h.extend(start, clone, 0)
}

func (h *History[M]) extend(m M, clone func(M) M, done uint64) bool {
	if done == 1<<len(h.ops)-1 {
		return true
	}
	for i := range h.ops {
		if done>>i&1 == 1 || !h.mayComeNext(i, done) {
			continue
		}
		if next := clone(m); h.ops[i].replay(next) && h.extend(next, clone, done|1<<i) {
			return true
		}
	}
	return false
}

func (h *History[M]) mayComeNext(i int, done uint64) bool {
	for k := range h.ops {
		if done>>k&1 == 0 && h.ops[k].ended < h.ops[i].began {
			return false
		}
	}
	return true
}

// String lists the operations with the instants at which they began and ended.
func (h *History[M]) String() (text string) {
	for _, op := range h.ops {
		text += fmt.Sprintf("  %2d-%-2d %s\n", op.began, op.ended, op.name())
	}
	return text
}
