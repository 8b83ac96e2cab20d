// Package model defines what an engine must do with a sequence of calls. It keeps a list of all
// calls, and computes each verdict from scratch from that list and docs/rules. It is too simple to
// be wrong, and shares no code with the engine.
//
//	m := model.New(model.Config{Now: clock.Now()})
//	m.Load(guard.Rules())
//	c := &model.Call{Resource: "orders", Units: 1}
//	m.Enter(c)                     // sets c.State, c.By (the rule) and c.Wait
//	m.Advance(c.Wake())            // time passes
//	m.Run(c)                       // its wait has ended
//	m.Exit(c, false)
//
// It covers authority, system, hotspot, flow, isolation and breaker rules, enforced and in shadow
// mode, and changes of rules. It does not cover randomness (a breaker's ramp), learned limits
// (adaptive and outlier rules, system rules of strategy steady), limits shared by a cluster, the
// caps on nodes and values, rules with a prefix or a path, or rules that count all their names together.
//
// It has two users: package replay, which replays traces recorded from the Java Sentinel, and the
// drawer in this package's tests, which draws rules and calls of all kinds. A failure of the drawer
// names its history, and
//
//	go test ./internal/proof/model -run 'TestDrawn$' -history=17
//
// repeats it. There are three more oracles: linearizability (module linear), bounds over every real
// interval, and sums that racing callers keep.
package model
