package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// Flow applies the flow rules.
type Flow struct{}

// Name is "flow".
func (Flow) Name() string { return "flow" }

// Kind is the family: without its rules the slot has nothing to say.
func (Flow) Kind() core.Kind { return core.KindFlow }

// Decider is the rules themselves.
func (Flow) Decider(of core.Checker, rules any) core.Decider {
	return relayed[Flow, *flow.Rules](of, rules)
}

// Ask asks every flow rule of the resource.
func (Flow) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindFlow).(*flow.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets every flow rule of the resource take.
func (Flow) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindFlow).(*flow.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}
