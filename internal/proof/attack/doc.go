// Command attack stresses engines from outside, and checks whether they keep their promises:
//
//	go run ./internal/proof/attack                     for a minute; -seed, or PENSTOCK_SEED, chooses other rounds
//	go run ./internal/proof/attack -rounds 10          that many rounds of each attack
//	go run ./internal/proof/attack -for 8h
//	go run ./internal/proof/attack -only storms,shadows
//	go run ./internal/proof/attack -list               the attacks and the promise that each checks
//
// It prints what it offered and what it checked. At the first broken promise it stops, prints the
// promise, the steps before it and how to repeat them, and exits with 1. A round that runs alone,
// with -round, prints all of its steps.
//
// An attack is a function in its own file and a line in attack.go. It runs one round after the
// other, each from a seed, so that a round can be repeated: exactly if it has one caller at a time;
// if callers race, they race for the same things.
//
// # What it relies on
//
// Expectations come from the documents, and from a log of the calls, their times and their
// outcomes: never from the engine's own counters alone. Package model and its drawer check the
// verdicts of calls made one after the other. Here callers race, services stall, machines are
// overloaded and slots panic: attacks check bounds that need no such log, or compare two guards, or
// ask the model (instants).
//
// # The files
//
//	main, campaign, round    the command: rounds in turn, and their common parts
//	attack                   the list
//	draw, call, reshape      random rules and calls, and every way to change rules
//	stage                    a clock on which callers sleep, and one thing happens at a time
//	other files              one attack each, named after it
package main
