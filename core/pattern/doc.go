// Package pattern implements the patterns with which rules name resources: regular expressions with
// their cost ([Size]) and matches ([Expressions]), and [Wildcards]. Most programs don't import it.
package pattern
