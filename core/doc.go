// Package core holds what every protection shares: the clock, the call on its
// way through the chain ([Invocation]) and the handle its caller gets
// ([Entry]), the roles a [Slot] may play and the [Chain] that runs them, the
// rule [Table] with its one snapshot per engine ([Ruleset]), and the one error
// type of a refused call ([BlockError]). Clocks are [SystemClock], [CoarseClock]
// and, for tests, [ManualClock]. A [Handle] is a resource whose name is not looked
// up at each call, and the [Sampler] reads the machine for the rules that go by it.
//
// The package decides nothing by itself. Families of rules (flow and its
// siblings) bring the decisions, package slots brings the order, and package
// api is what users call.
//
// # The life of a call
//
// [Engine.Enter] prepares the call (which nodes of the tree is it counted on?),
// asks every rule without taking (see [Decider] for when it needn't), lets every
// rule take what it grants, waits once if some rule said so, asks again after a
// wait (see [Rechecker]), and records the outcome. [Entry.Exit] records the
// completion and gives back what was held. Whatever a rule granted stands as a
// [Reservation] on the invocation, so that a refusal further down the chain gives
// everything back.
package core
