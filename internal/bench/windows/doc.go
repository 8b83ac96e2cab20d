// Package windows implements ways to limit the calls in an interval, each as small as possible: for
// comparison, not for use. docs/rules/flow.md has the results, and names the rule that uses each.
//
// Each way is safe for concurrent use, checks and counts in one step, and takes the time as an
// argument, in nanoseconds. Times don't go back, except that callers may be a little late.
package windows
