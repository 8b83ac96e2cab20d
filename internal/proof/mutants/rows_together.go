package main

// togetherRows break rules that count all their names together.
var togetherRows = []row{
	{
		invariant:   "A call nested in one that the rule has counted isn't counted again.",
		declaration: "internal/engine.Invocation.CountAt",
		old:         `inv.NestedAt(home)`,
		new:         `false`,
		test:        "go test -tags sim -run ^TestSimTogether$ ./isolation",
	},
	{
		invariant:   "A call below one that has exited is counted.",
		declaration: "internal/engine.Invocation.NestedAt",
		old:         `w.home == home && w.entry.runs()`,
		new:         `w.home == home`,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
	{
		invariant:   "A context with another name is still below the calls that it was made in.",
		declaration: "internal/engine.WithContext",
		old:         `c.marks, c.within = from.marks, from.within`,
		new:         `c.marks = from.marks`,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
	{
		invariant:   "Calls that have exited don't hide the running ones around them.",
		declaration: "internal/engine.Invocation.below",
		old:         `w = w.outer`,
		new:         `w = nil`,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
	{
		invariant:   "A call that a rule counts only once it asks for more includes calls nested in it.",
		declaration: "internal/engine.Entry.join",
		old:         `inv.homes = append(inv.homes, home)`,
		test:        "go test -run ^TestTogetherMore$ ./api",
	},
	{
		invariant:   "The rule hands over what it counted when it changes, before calls see the change.",
		declaration: "internal/family.Compiled.BindHomes",
		old:         `at.HandOver(now)`,
		new:         `_ = at`,
		test:        "go test -tags sim -run ^TestSimTogether$ ./isolation",
	},
	{
		invariant:   "A rule that goes on stays at its home.",
		declaration: "internal/family.Compiled.BindHomes",
		old:         `t.setHome(next.rule, h)`,
		new:         `_ = h`,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
	{
		invariant:   "The rule is no nearer to a name than others: it displaces none.",
		declaration: "internal/family.excludes",
		old:         `info.Mode == spec.Enforce && !info.Together`,
		new:         `info.Mode == spec.Enforce`,
		test:        "go test -run ^TestTogetherDisplacesNone$ ./api",
	},
	{
		invariant:   "A resource remembers the expressions of such rules that match its name.",
		declaration: "internal/family.Index.Hold",
		old:         ` && len(after.matched) == 0`,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
	{
		invariant:   "Calls in the queue run when the rule is gone.",
		declaration: "internal/family.Compiled.BindHomes",
		old:         `bind(at, nil)`,
		new:         `_ = at`,
		test:        "go test -run ^TestTogetherQueues$ ./api",
	},
	{
		invariant:   "Members share the limit under the rule, not under its pattern.",
		declaration: "internal/family.SharedKey",
		old:         `parts = []string{kind.String() + " together", rule.ID}`,
		new:         `parts = []string{kind.String() + " together", rule.ID, rule.Resource}`,
		test:        "go test -run ^TestTogetherInACluster$ ./api",
	},
	{
		invariant:   "The rule for every resource counts inbound calls.",
		declaration: "internal/family.AtHome",
		old:         `(match != spec.MatchExact || inv.Inbound()) && `,
		test:        "go test -short -run ^TestTogetherAgreesWithALog$ ./api",
	},
}
