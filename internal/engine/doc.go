// Package engine is the machine: a call on its way through the chain ([Invocation]) and the handle
// its caller gets ([Entry]), the roles of a [Slot] and the [Chain] that runs them, and the one
// snapshot per engine of all rules ([Snapshot]). A [Handle] is a resource whose name is not looked up
// at each call, and the [sampler.Sampler] reads the machine's load for the rules that depend on it.
//
// The package decides nothing by itself. Families of rules (flow and its siblings) make the
// decisions, package slots sets their order, and package api is what users call.
//
// # The life of a call
//
// [Engine.Enter] prepares the call (which nodes of the tree is it counted on?), asks every rule
// without taking (where that is of any use), lets every rule take what it grants, waits once if
// some rule said so, asks again after a wait (see [Rechecker]), and records the outcome.
// [Entry.Exit] records the completion and gives back what was held. Whatever a rule granted is kept
// as a [Reservation] on the invocation, so that a refusal further down the chain gives everything
// back.
package engine
