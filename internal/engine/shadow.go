package engine

// ShadowChecker is a [Checker] that may have rules in shadow mode. They decide last, when no
// enforced rule has rejected the call: so they change no verdict, not even which calls are asked
// before they take, and they count no call that is rejected anyway.
//
// They must take units only from their own meters: a window, a semaphore or a table that no
// enforced rule uses. These don't keep a node from leaving; see [meter.ShadowOwner].
type ShadowChecker interface {
	// Modes reports whether there are enforced rules, and rules in shadow mode. Without the former
	// the Checker is not asked for a verdict, without the latter Shadow is not called.
	Modes() (hold, shadow bool)
	// Shadow lets the rules in shadow mode decide on a call that runs, or waits. Rules that decide
	// after a wait do so in Recheck.
	Shadow(*Invocation)
}
