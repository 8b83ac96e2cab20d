// Package model says what an engine must do with one call after the other: a list of all calls
// there ever were, and what docs/rules says of each family, worked out anew from the list for every
// question. It is too simple to be wrong, and shares no code with the engine.
//
//	m := model.New(model.Config{Now: clock.Now()})
//	m.Load(guard.Rules())
//	c := &model.Call{Resource: "orders", Units: 1}
//	m.Enter(c)                     // c.State says what becomes of it, c.By by which rule, c.Wait for how long
//	m.Advance(c.Wake())            // time passes
//	m.Run(c)                       // its wait is over
//	m.Exit(c, false)
//
// It knows authority, system, hotspot, flow, isolation and breaker rules, enforced and in shadow
// mode, and goes on from rules to changed ones. It does not know what is random (a breaker's ramp)
// or learned (adaptive and outlier rules, system rules of strategy steady), what a cluster shares,
// the caps on nodes and values, nor rules with a prefix or a path.
//
// It is asked by two: package replay, which replays what was recorded of Java's Sentinel, and the
// drawer in this package's tests, which draws rules and calls of all kinds. A failure of the drawer
// names its history, and
//
//	go test ./internal/proof/model -run 'TestDrawn$' -history=17
//
// makes it again. Three other oracles stand beside it: linearizability (module linear), bounds
// over every real interval, and sums that racing callers keep.
package model
