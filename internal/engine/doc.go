// Package engine runs calls: a call on its way through the chain ([Invocation]) and its caller's
// handle ([Entry]), the roles of a [Slot] and the [Chain] that runs them, and one snapshot of all
// rules per engine ([Snapshot]). A [Handle] is a resource whose name is not looked up at each call,
// and the [sampler.Sampler] reads the machine's load for the rules that depend on it.
//
// The package decides nothing by itself. Families of rules (flow and its siblings) make the
// decisions, package slots sets their order, and package api is the entry point for programs.
//
// # The life of a call
//
// [Engine.Enter] prepares the call (finds the nodes of the tree on which it is counted), asks every
// rule without taking (if that is of any use), lets every rule take its units, waits once if some
// rule requires it, asks again after a wait (see [Rechecker]), and records the outcome.
// [Entry.Exit] records the completion and gives back held units. Each grant of a rule is kept as a
// [Reservation] on the invocation, so that a rejection further down the chain gives everything
// back.
package engine
