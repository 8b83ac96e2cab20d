package family

import (
	"cmp"
	"iter"
	"slices"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// Kept is a family's state at a resource: the controllers of the rules that apply there, and of
// rules that are off, which continue from them. It is immutable: its successor is built from it.
type Kept[R spec.Rule, C any] struct {
	revision uint64 // of the rules
	made     []made[C]
	matched  []*pattern.Expression // expressions that match the resource's name
	common   any
	idle     func(*C, int64) bool
}

// made is a controller and the number of its rule. They are kept in the order of the rules.
type made[C any] struct {
	rule       int
	controller *C
}

func compareRules[C any](a, b made[C]) int { return cmp.Compare(a.rule, b.rule) }

// All yields the controllers, in the order of their rules. A nil Kept has none.
func (h *Kept[R, C]) All() iter.Seq[*C] {
	return func(yield func(*C) bool) {
		if h == nil {
			return
		}
		for _, m := range h.made {
			if !yield(m.controller) {
				return
			}
		}
	}
}

// Common returns the state shared by the controllers; see [engine.Binding]. A nil Kept has none.
func (h *Kept[R, C]) Common() any {
	if h == nil {
		return nil
	}
	return h.common
}

// Idle reports whether the whole state can be forgotten.
func (h *Kept[R, C]) Idle(now int64) bool {
	if h.idle == nil {
		return true
	}
	for c := range h.All() {
		if !h.idle(c, now) {
			return false
		}
	}
	return true
}

// find returns the controller of a rule, or nil if there is none.
func (h *Kept[R, C]) find(rule int) *C {
	if i, ok := slices.BinarySearchFunc(h.made, made[C]{rule: rule}, compareRules[C]); ok {
		return h.made[i].controller
	}
	return nil
}

// Hold builds the state of the rules at a resource, and keeps it there. It returns the controllers
// that decide on calls for the name that the resource stands for, in the order of their rules, or
// none until the name has been matched.
//
// If a rule did not change, its controller continues unchanged. If it did, or if another member now
// shares its limit, the new one is built from the old one.
func (t *Index[R, C]) Hold(at *engine.Binding) []*C {
	before, _ := at.Held.(*Kept[R, C])
	if before == nil {
		before = &Kept[R, C]{revision: t.revision}
	}
	at.Common = before.common
	which := t.which(at.Name, at.Matched)
	if at.Beyond() {
		which = slices.DeleteFunc(which, t.atHomeOnly)
	}
	if name := at.Resource.Name(); name != at.Name {
		which = append(which, t.selection.about(name)...)
		slices.Sort(which)
		which = slices.Compact(which)
	}
	after := &Kept[R, C]{revision: t.revision, idle: t.maker.Idle}
	after.made = t.complement(t.carry(before, at, which), at, which)
	if after.common = at.Common; !at.Beyond() {
		after.matched = at.Matched.List
	}
	switch {
	case len(after.made) == 0 && after.common == nil && len(after.matched) == 0: // else they would be lost
		at.Held = nil
	case !at.Beyond() || before.revision != t.revision || len(after.made) != len(before.made):
		at.Held = after
	}
	if at.Pending {
		return nil
	}
	controllers := make([]*C, len(which))
	for k, i := range which {
		if h := t.homes[i]; h != nil {
			controllers[k] = h.controller
		} else {
			controllers[k] = after.find(i)
		}
		if asked := &t.records[i].Asked; at.Asked && !asked.Load() {
			asked.Store(true)
		}
	}
	return controllers
}

// atHomeOnly reports whether a rule doesn't decide on calls beyond the cap. An enforced rule gets
// nodes for its names, so it need not; a rule in shadow mode gets none.
func (t *Index[R, C]) atHomeOnly(rule int) bool {
	info := t.rules[rule].Info()
	return info.Mode == spec.Shadow && info.Named() && info.Resource != node.OverflowName
}

// carry moves the held state over to these rules.
func (t *Index[R, C]) carry(before *Kept[R, C], at *engine.Binding, which []int) []made[C] {
	if before.revision == t.revision && at.Beyond() {
		return before.made // all of them may come to apply
	}
	kept := make([]made[C], 0, len(before.made))
	for _, m := range before.made {
		unchanged, ok := true, true
		if before.revision != t.revision {
			m.rule, unchanged, ok = t.successor(before.revision, m.controller)
		}
		if !ok || t.homes[m.rule] != nil || !t.applies(m.rule, at, which) {
			continue
		}
		if !unchanged {
			m.controller = t.successorOf(m.controller, m.rule, at)
		}
		kept = append(kept, m)
	}
	slices.SortFunc(kept, compareRules[C])
	return kept
}

// successorOf builds the controller that continues an older one, unless the update under way has
// already built it.
func (t *Index[R, C]) successorOf(old *C, rule int, at *engine.Binding) *C {
	if c, ok := at.Successor(old).(*C); ok {
		return c
	}
	c := t.maker.Build(t.rules[rule], t.records[rule], at, old)
	at.SetSuccessor(old, c)
	return c
}

// complement builds the missing controllers of rules that apply.
func (t *Index[R, C]) complement(have []made[C], at *engine.Binding, which []int) []made[C] {
	var fresh []made[C]
	for _, i := range which {
		if t.homes[i] != nil {
			continue
		}
		if _, ok := slices.BinarySearchFunc(have, made[C]{rule: i}, compareRules[C]); !ok {
			fresh = append(fresh, made[C]{i, t.maker.Build(t.rules[i], t.records[i], at, nil)})
		}
	}
	if len(fresh) == 0 {
		return have
	}
	all := slices.Concat(have, fresh)
	slices.SortFunc(all, compareRules[C])
	return all
}
