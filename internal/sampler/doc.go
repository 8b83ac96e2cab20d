// Package sampler reads the load, the CPU use and the memory use of the machine while a rule
// depends on them. It gets the engine's Now, Every and Logger as functions, and so lies below the
// engine.
package sampler
