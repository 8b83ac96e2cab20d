// Package slots defines the chain of slots, and the types for custom slots. Most programs don't
// import it. The order is defined in one place, [Default]; each of the library's slots is thin and
// leaves the work to the package of its family.
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
