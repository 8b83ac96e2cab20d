package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/outlier"
)

// Outlier applies the outlier rules.
type Outlier struct{}

// Name is "outlier".
func (Outlier) Name() string { return "outlier" }

// Kind is the family: without its rules the slot has nothing to say.
func (Outlier) Kind() core.Kind { return core.KindOutlier }

// Ask asks every outlier rule of the resource about the callee.
func (Outlier) Ask(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindOutlier).(*outlier.Rules); ok {
		return rules.Ask(inv)
	}
	return core.Verdict{}
}

// Take lets every outlier rule decide about the callee, unless the call will wait.
func (Outlier) Take(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindOutlier).(*outlier.Rules); ok {
		return rules.Take(inv)
	}
	return core.Verdict{}
}

// Recheck lets every outlier rule decide about the callee of a call that has waited.
func (Outlier) Recheck(inv *core.Invocation) core.Verdict {
	if rules, ok := inv.Rules(core.KindOutlier).(*outlier.Rules); ok {
		return rules.Recheck(inv)
	}
	return core.Verdict{}
}

// Concerns says that the slot has to do only with calls that a rule of it marked.
func (Outlier) Concerns() core.Calls { return core.MarkedCalls }

// Completed tells every rule that judged the callee how the call ended.
func (Outlier) Completed(inv *core.Invocation) { outlier.Completed(inv) }
