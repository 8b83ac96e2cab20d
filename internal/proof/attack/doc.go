// Command attack hurts engines from outside, and looks whether they keep their promises:
//
//	go run ./internal/proof/attack                     for a minute; -seed, or PENSTOCK_SEED, chooses other rounds
//	go run ./internal/proof/attack -rounds 10          so many rounds of each attack
//	go run ./internal/proof/attack -for 8h
//	go run ./internal/proof/attack -only storms,shadows
//	go run ./internal/proof/attack -list               the attacks, and what each demands
//
// It prints what it offered and what it checked. At the first promise that is broken it
// stops, says which and what came before, and how to see it again, and exits with 1. A round that
// is made alone, with -round, tells all of its steps.
//
// An attack is a function in a file of its own and a line in attack.go. It makes one
// round after the other, each from a seed, so that a round can be made again: exactly,
// where it has one caller at a time; where callers race, what they race for is the same.
//
// # What it goes by
//
// What is right comes from the documents, and from a log of what came in, when, and what
// became of it: never from the engine's own counters alone. Package model and its drawer judge
// the verdicts of one call after the other. Here callers race, services stall, machines are overloaded and slots panic: attacks hold bounds that need no such
// log, or compare two guards, or ask the model (instants).
//
// # The files
//
//	main, campaign, round    the command: rounds in turn, and what they share
//	attack                   the list
//	draw, call, reshape      random rules and calls, and every way to change rules
//	stage                    a clock on which callers sleep, and one thing happens at a time
//	the others               an attack each, by its name
package main
