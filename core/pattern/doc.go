// Package pattern implements the regular expressions in which rules name resources: their cost
// ([Size]), and their matches ([Expressions]). Most programs don't import it.
package pattern
