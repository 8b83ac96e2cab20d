// Package core defines the types that all packages share: the families of rules ([Kind]), the error
// of a rejected call ([BlockError]), the counts of a rule ([RuleStats]), and the verdicts of the
// rules on a call ([Explanation]). Most programs don't import it: package api is their entry point.
//
// The folders below it define more shared types: the clocks of a Guard (clocks), the values of
// arguments (argument), the expressions that match resource names (pattern), the common part of all
// families' rules (spec), and the readings of the machine (host).
package core
