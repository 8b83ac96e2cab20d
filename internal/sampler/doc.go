// Package sampler reads the load, the CPU use and the memory use of the machine, as long as a rule
// depends on them.
package sampler
