// Package machine tells how busy the machine is that the process runs on: its load, the
// use of the CPU time and of the memory that the process may use.
//
// What of it the rules want to know is sampled by a core.Sampler.
package machine
