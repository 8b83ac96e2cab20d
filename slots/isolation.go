package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
)

// Isolation applies the isolation rules.
type Isolation struct{}

// Name is "isolation".
func (Isolation) Name() string { return "isolation" }

// Kind is the family: without its rules the slot has nothing to say.
func (Isolation) Kind() core.Kind { return core.KindIsolation }

// Decider is the rules themselves.
func (Isolation) Decider(of core.Checker, rules any) core.Decider {
	return relayed[Isolation, *isolation.Rules](of, rules)
}

// Ask asks the isolation rules of the resource.
func (Isolation) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindIsolation).(*isolation.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets the isolation rules of the resource take.
func (Isolation) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindIsolation).(*isolation.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}
