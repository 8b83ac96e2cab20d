package main

// coreRows break decisions, entries, updates and the registry of resources.
var coreRows = []row{
	{
		invariant:   "A refused call returns the units that earlier rules granted it.",
		declaration: "internal/engine.Invocation.steps",
		old:         `inv.giveBack(); inv.stage, inv.step = refusing, 0`,
		new:         `inv.stage, inv.step = refusing, 0`,
		test:        "go test -run ^TestRefusedAtOnceHoldsNothing$ ./internal/engine",
	},
	{
		invariant:   "A decision uses one set of rules from start to end.",
		declaration: "internal/engine.Invocation.steps",
		old:         `if inv.stage == taking {`,
		new:         `if inv.stage == taking { bound = inv.engine.lookUp(inv.resource, inv.resource.Name(), inv.now, false);`,
		test:        "go test -run ^TestDecisionIsUnderOneSet$ ./internal/engine",
	},
	{
		invariant:   "A recorder that panics stops no other recorder.",
		declaration: "internal/engine.Invocation.interrupted",
		old:         `inv.engine.failed(reason, inv.now, func() string { return inv.slotAt(at, step) })`,
		new: `
			inv.engine.failed(reason, inv.now, func() string { return inv.slotAt(at, step) })
			if inv.stage >= admitting {
				inv.step = 1 << 20
			}`,
		test: "go test -run ^TestPanicInASlot$ ./internal/engine",
	},
	{
		invariant:   "A second Exit changes nothing, even if another call already uses the state.",
		declaration: "internal/engine.Entry.Exit",
		old: `
			case w>>flagBits != e.generation:
				return
			case w&flagBusy != 0:
				shared.Gosched()
			case word.CompareAndSwap(w, (e.generation+1)<<flagBits):`,
		new: `
			case w&flagBusy != 0:
				shared.Gosched()
			case word.CompareAndSwap(w, (w>>flagBits+1)<<flagBits):`,
		test: "go test -run ^TestStaleEntry$ ./internal/engine",
	},
	{
		invariant:   "Engine time never goes back, even if the clock does.",
		declaration: "internal/engine.Engine.Now",
		old: `
			switch {
			case e.system != nil:
				return e.system.Now()
			case e.steady == nil:
				return e.clock.Now()
			}
			return e.steady.Now()`,
		new:  `return e.clock.Now()`,
		test: "go test -run ^TestClockSetBackIsNoOutage$ ./internal/engine",
	},
	{
		invariant:   "EachResource calls its function without a lock.",
		declaration: "internal/engine.Engine.EachResource",
		old:         `f(r)`,
		new:         `r.mu.Lock(); f(r); r.mu.Unlock()`,
		test:        "go test -timeout 60s -run ^TestRefusalsAreToldUnderNoLock$ ./internal/engine",
		hangs:       true,
	},
	{
		invariant:   "A failed update leaves the rules in force unchanged.",
		declaration: "internal/engine.Engine.Update",
		old:         `if err := build(b); err != nil {`,
		new:         `if err := build(b); err != nil { b.next.complete(e.chain); e.rules.Store(b.next);`,
		test:        "go test -run ^TestUpdateIsAllOrNothing$ ./internal/engine",
	},
	{
		invariant:   "A rule in shadow mode changes no verdict.",
		declaration: "internal/engine.Chain.bind",
		old:         `if slot.rechecker != nil`,
		new:         `if b.direct = b.direct && len(b.shadows) == 0; slot.rechecker != nil`,
		test:        "go test -run ^TestShadowRulesChangeNoVerdict$ ./hotspot",
	},
	{
		invariant:   "A resource's counts are the sum of its contexts' counts.",
		declaration: "node.newCall",
		old:         `n.joint = c.Include(&n.Counters); n.joint`,
		new:         `n.joint = true; c.Include(&n.Counters)`,
		test:        "go test -run ^TestResourceIsTheSumOfItsContexts$ ./slots",
	},
	{
		invariant:   "A new semaphore starts with the units already in flight.",
		declaration: "node.StatisticNode.NeedSemaphore",
		old:         `g.Seed(n.UnitsInFlight())`,
		new:         `g.Seed(0)`,
		test:        "go test -run ^TestConcurrencyRuleMeetsCallsInFlight$ ./flow",
	},
	{
		invariant:   "A registry keeps no more names than its budget allows.",
		declaration: "node.Budget.take",
		old:         `if b.used.Add(1) > b.max { b.used.Add(-1); return false }`,
		new:         `b.used.Add(1)`,
		test:        "go test -run ^TestRegistryScripts$ ./node",
	},
}
