// Package host measures the load of the machine that the process runs on, and the use of the CPU
// time and the memory available to the process. Most programs don't import it.
//
// [Local] reads them from Linux's files; a custom [Source] may replace it. A sampler.Sampler reads
// it four times a second while a rule needs it.
package host
