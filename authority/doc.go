// Package authority controls who may call a resource: an allowlist names the callers that may, and a
// denylist names the callers that may not.
//
// A caller is identified by its origin, which the program sets in the context of a call (see
// api.WithContext). Names are compared exactly; only blanks around a name in a list are dropped.
//
// Use an allowlist if you know the callers: a new one is refused until you add it. Use a denylist
// to keep out a few callers and admit all others.
//
// The page docs/rules/authority.md has every field and examples.
package authority
