package engine

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Slot is one link of the chain. It has a name and plays one or more of these roles:
// [Preparer], [Checker], [Rechecker], and the recorders [PassRecorder], [BlockRecorder] and
// [CompleteRecorder]. Slots keep no state of a call; that is in the [Invocation].
type Slot interface {
	Name() string
}

// Preparer finds what a call needs before it is judged: its nodes.
type Preparer interface {
	Prepare(*Invocation)
}

// Checker judges a call: the rules of a family that apply to its resource (see [Family].Bind), or a
// user's own slot.
//
// Take decides. It reserves what it grants on the invocation (see [Invocation.Reserve]), and a
// refusal by a later slot gives that back. Ask is the early look: it takes nothing, and a refusal
// here saves everyone what other checkers would have taken for the call. It may say how long the
// call would wait; a call that can't wait that long is then refused. No Checker may rely on having
// been asked: a call may go to Take directly.
//
// A Checker may have more methods:
//
//	Recheck(*Invocation) Verdict   // see Rechecker
//	Shadow(*Invocation)          // see ShadowChecker, with Modes
//	Direct() bool                  // Take never has a call wait, and need not be asked before
//	Shares() Sharer                // see Sharer
type Checker interface {
	Ask(*Invocation) Verdict
	Take(*Invocation) Verdict
}

// Rechecker is asked again after a call has waited: because it looks at a state that may have
// changed, or because it counts what runs, and a waiting call doesn't run yet.
type Rechecker interface {
	Recheck(*Invocation) Verdict
}

// PassRecorder records that a call was admitted, at the moment it is released.
type PassRecorder interface {
	Passed(*Invocation)
}

// BlockRecorder records that a call was refused.
type BlockRecorder interface {
	Blocked(*Invocation, *core.BlockError)
}

// CompleteRecorder records that an admitted call has ended.
type CompleteRecorder interface {
	Completed(*Invocation)
}

// FamilySlot is the place of a family of rules in the chain, where the rules that [Family].Bind
// returns judge the call. Calls of a resource without such rules skip the slot.
type FamilySlot core.Kind

// Name is the family's name.
func (f FamilySlot) Name() string { return core.Kind(f).String() }

// Verdict is what a rule says of a call. The zero value admits it.
type Verdict struct {
	// Block refuses the call.
	Block *core.BlockError
	// Wait admits the call after that time. By is its refusal if it can't wait.
	Wait time.Duration
	By   *core.BlockError
	// Borrowed says that the wait is for a coming bucket, in which the call is to
	// be counted.
	Borrowed bool
}

// longest keeps whichever of two waits counts.
func (v *Verdict) longest(next Verdict) {
	if next.Wait > 0 && next.Outlasts(*v) {
		*v = next
	}
}

// Outlasts reports whether the wait that counts is v's and not other's: the longer one counts, and
// of two equal waits the one for a bucket, which begins then.
func (v Verdict) Outlasts(other Verdict) bool {
	return v.Wait > other.Wait || v.Borrowed && v.Wait == other.Wait
}
