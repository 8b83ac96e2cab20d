// Package measure times things side by side. What is compared is run in turns, in
// short batches, round after round, so that a machine that is slow for a second is
// slow for all; each batch has one of the unit beside it, which is two readings of
// the clock; and what counts is the median of the rounds in which nobody else had a
// share of the core.
package measure
