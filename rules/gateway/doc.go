// Package gateway defines rules for gateways, which forward requests to routes: groups of paths, and
// limits for a route or a group, as a whole or for each value of a request parameter. Its rules check
// no calls themselves: each becomes a flow or a hotspot rule when rules are loaded, and a [Table]
// gives an adapter the groups of a path and the values to pass with a call.
//
// The page docs/gateway.md has every field and examples.
package gateway
