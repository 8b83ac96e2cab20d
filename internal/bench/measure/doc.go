// Package measure times things side by side. Cases run in turns, in short batches, round after
// round, so that a machine that is slow for a second is slow for all. Next to each batch runs a
// batch of the unit, two readings of the clock. The result is the median of the rounds in which
// nothing else used the core.
package measure
