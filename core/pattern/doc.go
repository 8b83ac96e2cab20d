// Package pattern is the regular expressions by which rules name resources: what they may cost
// ([Size]), and which of them match a name ([Expressions]).
package pattern
