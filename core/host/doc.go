// Package host measures how busy the machine is that the process runs on: its load, and the use of
// the CPU time and the memory that the process may use.
//
// [Local] reads them from Linux's files; a [Source] of your own may replace it. A sampler.Sampler
// asks it four times a second, as long as a rule needs it.
package host
