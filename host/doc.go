// Package host tells how busy the machine is that the process runs on: its load, the
// use of the CPU time and of the memory that the process may use.
//
// [Local] reads them off the files of Linux; a [Source] of your own may stand in for
// it. A sampler.Sampler asks it four times a second, while a rule wants to know.
package host
