// Package sampler reads the machine's load, CPU use and memory use while a rule depends on them. It
// takes the engine's Now, Every and Logger as functions, so that it need not import the engine.
package sampler
