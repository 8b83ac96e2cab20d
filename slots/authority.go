package slots

import (
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core"
)

// Authority applies the authority rules.
type Authority struct{}

// Name is "authority".
func (Authority) Name() string { return "authority" }

// Kind is the family: without its rules the slot has nothing to say.
func (Authority) Kind() core.Kind { return core.KindAuthority }

// Decider is the rules themselves.
func (Authority) Decider(of core.Checker, rules any) core.Decider {
	return relayed[Authority, *authority.Rules](of, rules)
}

// Ask asks every authority rule of the resource.
func (Authority) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindAuthority).(*authority.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take takes nothing, see [authority.Rules.Take].
func (Authority) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindAuthority).(*authority.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}
