// Package host measures the load of the machine that the process runs on, and the use of the CPU
// time and memory available to the process. Most programs don't import it.
//
// [Local] reads these metrics from Linux's files; a custom [Source] may replace it. A
// sampler.Sampler reads the source four times per second while a rule needs it.
package host
