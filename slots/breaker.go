package slots

import (
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
)

// Breaker applies the breaker rules.
type Breaker struct{}

// Name is "breaker".
func (Breaker) Name() string { return "breaker" }

// Kind is the family: without its rules the slot has nothing to say.
func (Breaker) Kind() core.Kind { return core.KindBreaker }

// Decider is the rules themselves.
func (Breaker) Decider(of core.Checker, rules any) core.Decider {
	return relayed[Breaker, *breaker.Rules](of, rules)
}

// Ask asks every breaker of the resource.
func (Breaker) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindBreaker).(*breaker.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets every breaker of the resource decide, unless the call will wait.
func (Breaker) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindBreaker).(*breaker.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}

// Recheck lets every breaker decide about a call that has waited.
func (Breaker) Recheck(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindBreaker).(*breaker.Rules); ok {
		return rules.Recheck(inv)
	}
	return core.Verdict{}
}

// Concerns says that the slot has to do only with calls that a breaker marked.
func (Breaker) Concerns() core.Calls { return core.MarkedCalls }

// Completed tells every breaker how the call ended.
func (Breaker) Completed(inv *core.Invocation) { breaker.Completed(inv) }
