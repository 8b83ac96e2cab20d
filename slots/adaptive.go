package slots

import (
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
)

// Adaptive applies the adaptive rules.
type Adaptive struct{}

// Name is "adaptive".
func (Adaptive) Name() string { return "adaptive" }

// Kind is the family: without its rules the slot has nothing to say.
func (Adaptive) Kind() core.Kind { return core.KindAdaptive }

// Ask asks the adaptive rules of the resource.
func (Adaptive) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindAdaptive).(*adaptive.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets the adaptive rules of the resource take, unless the call will wait.
func (Adaptive) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindAdaptive).(*adaptive.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}

// Recheck lets them take for a call that has waited.
func (Adaptive) Recheck(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindAdaptive).(*adaptive.Rules); ok {
		return rules.Recheck(inv)
	}
	return core.Verdict{}
}

// Concerns says that the slot has to do only with calls that a rule of it marked.
func (Adaptive) Concerns() core.Calls { return core.MarkedCalls }

// Completed lets them learn how long the call took.
func (Adaptive) Completed(inv *core.Invocation) { adaptive.Completed(inv) }
