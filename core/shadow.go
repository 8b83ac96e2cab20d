package core

// ShadowChecker is a [Checker] that may have rules in shadow mode. They decide last, when no
// rule that holds has refused the call: so what they say changes no verdict, not even
// which call is asked before it takes, and they count no call that is refused anyway.
//
// What they take must be theirs alone: a window, a semaphore or a table that no rule which
// holds looks at. Nor is it a reason for a node to stay, see [node.ShadowOwner].
type ShadowChecker interface {
	// Modes says whether there are rules that hold, and rules in shadow mode. Without
	// the first the Checker is not asked for a verdict, without the second there is no
	// Shadow.
	Modes() (hold, shadow bool)
	// Shadow has the rules in shadow mode decide about a call that runs, or waits.
	// Those that decide after a wait do that in Recheck.
	Shadow(*Invocation)
}
