// Package gateway has rules for gateways, which pass requests on to routes: groups of paths, and
// limits for a route or a group, as a whole or for each value of something that requests carry. Its
// rules judge nothing themselves: each becomes a flow or a hotspot rule when rules are loaded, and
// a [Table] gives an adapter the groups of a path and the values to pass with a call.
//
// The page docs/gateway.md has every field and examples.
package gateway
