// Package family compiles the rules of a family: which of them apply to a resource, which rule
// continues which when rules are replaced, and their state at each resource meanwhile. A family
// embeds [Compiled] in a table of its own, which makes that an engine.Family except for Bind.
package family
