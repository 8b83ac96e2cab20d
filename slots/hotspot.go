package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
)

// Hotspot applies the hotspot rules.
type Hotspot struct{}

// Name is "hotspot".
func (Hotspot) Name() string { return "hotspot" }

// Kind is the family: without its rules the slot has nothing to say.
func (Hotspot) Kind() core.Kind { return core.KindHotspot }

// Decider is the rules themselves.
func (Hotspot) Decider(of core.Checker, rules any) core.Decider {
	return relayed[Hotspot, *hotspot.Rules](of, rules)
}

// Ask asks every hotspot rule of the resource.
func (Hotspot) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindHotspot).(*hotspot.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets every hotspot rule of the resource take.
func (Hotspot) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindHotspot).(*hotspot.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}
