// Package windows has the ways in which a limit of calls in an interval can be kept,
// each as small as it can be written: to be compared, not to be used. docs/rules/flow.md
// has the outcome, and which rule uses which.
//
// Each way is safe for concurrent use, checks and counts in one step, and takes the
// time as an argument: nanoseconds that are not before those of earlier calls, except
// for callers who are a little late.
package windows
