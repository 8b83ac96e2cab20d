// Package slots provides the chain of slots and the types for custom slots. Programs without slots
// of their own don't import it. Only [Default] defines the order; each of the library's slots is
// thin and leaves the work to its family's package.
//
// A custom slot has a name, plays one or more roles, and sees the call as a [Call]:
//
//	type tenants struct{ slots.AskOnly }
//
//	func (tenants) Name() string { return "tenants" }
//
//	chain := slots.Default().With(tenants{refuseSuspended}, slots.After("authority"))
//	guard, err := api.New(api.Config{Chain: chain})
//
// The page docs/slots.md explains slots step by step.
package slots
