package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/system"
)

// System applies the system rules to inbound calls.
type System struct{}

// Name is "system".
func (System) Name() string { return "system" }

// Kind is the family: without its rules the slot has nothing to say.
func (System) Kind() core.Kind { return core.KindSystem }

// Decider is the rules themselves.
func (System) Decider(of core.Checker, rules any) core.Decider {
	return relayed[System, *system.Rules](of, rules)
}

// Ask asks every system rule.
func (System) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindSystem).(*system.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets every system rule with a limit take.
func (System) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindSystem).(*system.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}

// Concerns says that the slot has to do with inbound calls only.
func (System) Concerns() core.Calls { return core.InboundCalls }

// Completed tells the rules that are in force by now how long an inbound call took.
func (System) Completed(inv *core.Invocation) {
	if table, ok := inv.Engine().Rules().Family(core.KindSystem).(*system.Table); ok {
		table.Completed(inv)
	}
}
