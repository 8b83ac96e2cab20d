package engine

// ShadowChecker is a [Checker] that may have rules in shadow mode. They decide last, when no
// enforced rule has refused the call: so they change no verdict, not even which calls are asked
// before they take, and they count no call that is refused anyway.
//
// What they take must be theirs alone: a window, a semaphore or a table that no enforced rule looks
// at. Nor does it keep a node from leaving, see [meter.ShadowOwner].
type ShadowChecker interface {
	// Modes says whether there are enforced rules, and rules in shadow mode. Without the former the
	// Checker is not asked for a verdict, without the latter Shadow is not called.
	Modes() (hold, shadow bool)
	// Shadow lets the rules in shadow mode decide on a call that runs, or waits. Those that decide
	// after a wait do so in Recheck.
	Shadow(*Invocation)
}
