// Package family compiles the rules of a family: which of them apply to a resource, which new rule
// continues which old one when rules are replaced, and the state that they keep at each resource. A
// family embeds [Compiled] in its own table, which then implements engine.Family except for Bind.
package family
