// Package slots has the chain of slots, and the types for custom slots. The order is defined in one
// place, [Default]; each of the library's slots is thin and leaves the work to the package of its
// family.
//
// A custom slot has a name, plays one or more roles, and sees the call as a [Call]:
//
//	type tenants struct{ slots.AskOnly }
//
//	func (tenants) Name() string { return "tenants" }
//
//	chain := slots.Default().With(tenants{refuseSuspended}, slots.After("authority"))
//	guard, err := api.New(api.Config{Chain: chain})
package slots
