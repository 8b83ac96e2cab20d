// Package pattern implements the regular expressions with which rules name resources: what they may
// cost ([Size]), and which of them match a name ([Expressions]).
package pattern
