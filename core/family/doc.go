// Package family compiles the rules of a family: which of them apply to a resource, which goes on
// from which when rules are replaced, and what each holds at a resource meanwhile. A family embeds
// [Compiled] in a table of its own, which makes it a core.Family but for Bind.
package family
