package engine

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Slot is one link of the chain. It has a name and plays one or more of these roles: [Preparer],
// [Checker], [Rechecker], and the recorders [PassRecorder], [BlockRecorder] and [CompleteRecorder].
// Slots keep no state of a call; that is in the [Invocation].
type Slot interface {
	Name() string
}

// Preparer finds the nodes of a call before any rule decides on it.
type Preparer interface {
	Prepare(*Invocation)
}

// Checker decides on a call. It is made of the rules of a family that apply to the call's resource
// (see [Family].Bind), or is a custom slot.
//
// Take decides. It reserves its grants on the invocation (see [Invocation.Reserve]), and a
// rejection by a later slot gives them back. Ask is the early look: it takes nothing, and a
// rejection here avoids taking units from other checkers. It may return the wait of the call; a
// call that can't wait that long is then rejected. No Checker may rely on having been asked: a call
// may go to Take directly.
//
// A Checker may have more methods:
//
//	Recheck(*Invocation) Verdict   // see Rechecker
//	Shadow(*Invocation)          // see ShadowChecker, with Modes
//	Direct() bool                  // Take never makes a call wait, and may run without Ask
//	Shares() Sharer                // see Sharer
type Checker interface {
	Ask(*Invocation) Verdict
	Take(*Invocation) Verdict
}

// Rechecker is asked again after a call has waited: because its state may have changed, or because
// it counts running calls, and a waiting call doesn't run yet.
type Rechecker interface {
	Recheck(*Invocation) Verdict
}

// PassRecorder records that a call was admitted, at the moment it is released.
type PassRecorder interface {
	Passed(*Invocation)
}

// BlockRecorder records that a call was rejected.
type BlockRecorder interface {
	Blocked(*Invocation, *core.BlockError)
}

// CompleteRecorder records that an admitted call has ended.
type CompleteRecorder interface {
	Completed(*Invocation)
}

// FamilySlot is the slot of a family of rules in the chain, where the rules returned by
// [Family].Bind decide on the call. Calls of a resource without such rules skip the slot.
type FamilySlot core.Kind

// Name returns the family's name.
func (f FamilySlot) Name() string { return core.Kind(f).String() }

// Verdict is a rule's decision on a call. The zero value admits it.
type Verdict struct {
	// Block rejects the call.
	Block *core.BlockError
	// Wait admits the call after that time. By is its rejection if it can't wait.
	Wait time.Duration
	By   *core.BlockError
	// Borrowed is true if the wait is for a later bucket, in which the call is to be counted.
	Borrowed bool
}

// longest replaces v with next if next's wait counts.
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
