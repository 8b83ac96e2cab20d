// Package authority says who may call a resource: an allowlist names the callers that may, a
// denylist those that may not.
//
// A caller is known by its origin, which the program gives with the context of a call
// (see api.WithContext). Names are compared exactly; only blanks around a name in a list are
// dropped.
//
// Use an allowlist where you know which callers there are: a new one is refused until it is added.
// Use a denylist to keep some callers out of what all others may use.
package authority
