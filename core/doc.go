// Package core has the words that all packages share: the families of rules ([Kind]), the error of a
// refused call ([BlockError]), what a rule has done ([RuleStats]), and what the rules would decide
// for a call ([Explanation]). It decides nothing: programs call package api, and the order in which
// rules are asked is in package slots.
//
// The folders below it have more words: the clocks that a Guard tells the time by (clocks), the values
// of arguments (argument), the expressions that match resource names (pattern), what the rules of all
// families have in common (spec), and the readings of the machine (host).
package core
