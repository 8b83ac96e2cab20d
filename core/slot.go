package core

import (
	"fmt"
	"slices"
	"time"
)

// Slot is one link of the chain. It has a name and plays one or more of the
// roles below. Slots keep no state of a call; that is in the [Invocation].
type Slot interface {
	Name() string
}

// Preparer finds what a call needs before it is judged: its nodes.
type Preparer interface {
	Prepare(*Invocation)
}

// Checker judges a call. Ask looks and takes nothing; most refusals end there. It may
// say how long the call would wait: one that can't wait for so long is refused then.
// Take decides: what it grants it reserves on the invocation (see
// [Invocation.Reserve]), and a refusal by a later slot gives it back.
type Checker interface {
	Ask(*Invocation) Verdict
	Take(*Invocation) Verdict
}

// FamilyChecker is a Checker of one family of rules. It is passed over where the family
// has nothing for the resource (see [Family].Bind): there it would say nothing.
type FamilyChecker interface {
	Checker
	Kind() Kind
}

// AskOnly makes a [Checker] of one that holds nothing: its answer is its verdict.
type AskOnly func(*Invocation) Verdict

// Ask asks.
func (f AskOnly) Ask(inv *Invocation) Verdict { return f(inv) }

// Take takes nothing: Ask has been heard.
func (f AskOnly) Take(*Invocation) Verdict { return Verdict{} }

// Rechecker is asked once more after a call has waited: because what it looks at is a
// state and may have changed, or because it counts what runs, and a call that waits
// doesn't yet.
type Rechecker interface {
	Recheck(*Invocation) Verdict
}

// PassRecorder records that a call was admitted, at the moment it is released.
type PassRecorder interface {
	Passed(*Invocation)
}

// BlockRecorder records that a call was refused.
type BlockRecorder interface {
	Blocked(*Invocation, *BlockError)
}

// CompleteRecorder records that an admitted call has ended.
type CompleteRecorder interface {
	Completed(*Invocation)
}

// Selective is a CompleteRecorder that has to do with some calls only, and is passed over
// for the others. One that is a [FamilyChecker] as well and has to do with marked calls is
// passed over where its family has no rules for the resource: it has marked none.
type Selective interface {
	CompleteRecorder
	Concerns() Calls
}

// Calls says which calls a [Selective] recorder has to do with.
type Calls uint8

// The kinds of calls.
const (
	AllCalls Calls = iota
	InboundCalls
	MarkedCalls // on which a mark was left, see [Invocation.Mark]
)

// sort is what a call is, as Calls tell them apart: an index of Chain.completed.
type sort uint8

const (
	sortInbound sort = 1 << iota
	sortMarked
	sorts = 1 << iota
)

func (inv *Invocation) sort() (s sort) {
	if inv.inbound {
		s |= sortInbound
	}
	if len(inv.marks) > 0 {
		s |= sortMarked
	}
	return s
}

// includes reports whether a recorder of these calls has to do with calls of a sort.
func (c Calls) includes(s sort) bool {
	switch c {
	case InboundCalls:
		return s&sortInbound != 0
	case MarkedCalls:
		return s&sortMarked != 0
	}
	return true
}

// Verdict is what a rule says of a call. The zero value admits it.
type Verdict struct {
	// Block refuses the call.
	Block *BlockError
	// Wait admits the call after that time. By is the refusal it gets if it can't
	// wait.
	Wait time.Duration
	By   *BlockError
	// Borrowed says that the wait is for a coming bucket, in which the call is to
	// be counted.
	Borrowed bool
}

// Chain is the slots in their order, sorted by role. It doesn't change once
// built.
type Chain struct {
	slots      []Slot
	preparers  []Preparer
	checkers   []Checker
	recheckers []Rechecker
	passed     []PassRecorder
	blocked    []BlockRecorder
	completed  [sorts][]CompleteRecorder // of each sort of calls those that it concerns

	kinds []Kind // of the checkers; KindNone is asked about every call
}

// judges are the checkers that have something to say where the families have these
// rules.
func (c *Chain) judges(rules *[kinds]any) []Checker {
	var judges []Checker
	for i, checker := range c.checkers {
		if kind := c.kinds[i]; kind == KindNone || rules[kind] != nil {
			judges = append(judges, checker)
		}
	}
	return judges
}

// NewChain returns a chain of slots in the given order. It panics if a slot plays
// no role or two have the same name: a chain is written, not read from somewhere.
func NewChain(slots ...Slot) *Chain {
	c := &Chain{slots: slices.Clone(slots)}
	names := make(map[string]bool)
	for _, s := range slots {
		if names[s.Name()] {
			panic(fmt.Sprintf("core: two slots named %q in one chain", s.Name()))
		}
		names[s.Name()] = true
		if !c.enlist(s) {
			panic(fmt.Sprintf("core: slot %q plays no role: give it a method of Preparer, Checker, Rechecker or one of the recorders", s.Name()))
		}
	}
	for _, checker := range c.checkers {
		kind := KindNone
		if family, ok := checker.(FamilyChecker); ok {
			kind = family.Kind()
		}
		c.kinds = append(c.kinds, kind)
	}
	return c
}

func (c *Chain) enlist(s Slot) bool {
	n := 0
	n += enlist(&c.preparers, s)
	n += enlist(&c.checkers, s)
	n += enlist(&c.recheckers, s)
	n += enlist(&c.passed, s)
	n += enlist(&c.blocked, s)
	if recorder, ok := s.(CompleteRecorder); ok {
		n++
		c.enlistCompleted(recorder)
	}
	return n > 0
}

func (c *Chain) enlistCompleted(recorder CompleteRecorder) {
	calls := AllCalls
	if selective, ok := recorder.(Selective); ok {
		calls = selective.Concerns()
	}
	for s := range c.completed {
		if calls.includes(sort(s)) {
			c.completed[s] = append(c.completed[s], recorder)
		}
	}
}

func enlist[Role any](list *[]Role, s Slot) int {
	role, ok := s.(Role)
	if !ok {
		return 0
	}
	*list = append(*list, role)
	return 1
}

// Position says where [Chain.With] puts a slot.
type Position struct {
	slot  string
	after bool
}

// Before is the place right before the named slot.
func Before(slot string) Position { return Position{slot: slot} }

// After is the place right after the named slot.
func After(slot string) Position { return Position{slot: slot, after: true} }

// With returns a new chain with one more slot. It panics if there is no slot of
// that name.
func (c *Chain) With(s Slot, where Position) *Chain {
	i := slices.IndexFunc(c.slots, func(s Slot) bool { return s.Name() == where.slot })
	if i < 0 {
		panic(fmt.Sprintf("core: no slot %q in the chain: it has %q", where.slot, c.Names()))
	}
	if where.after {
		i++
	}
	return NewChain(slices.Insert(slices.Clone(c.slots), i, s)...)
}

// Names are the names of the slots in order.
func (c *Chain) Names() []string {
	names := make([]string, len(c.slots))
	for i, s := range c.slots {
		names[i] = s.Name()
	}
	return names
}
