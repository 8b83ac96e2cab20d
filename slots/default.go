package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Default returns the standard chain. The order is Sentinel's.
func Default() *Chain {
	return NewChain(
		nodeSelector{},   // first: everything after it needs the call's node in the tree
		clusterBuilder{}, // then the nodes that rules use
		blockLog{},       // before the statistic, so that a rejection is logged even if counting it fails
		statistic{},      // before the rules, so that it records their combined decision

		engine.FamilySlot(core.KindAuthority), // first of the rules: cheapest, and an unauthorized caller takes nothing
		engine.FamilySlot(core.KindSystem),    // before rules for single resources: overload needs no lookup
		engine.FamilySlot(core.KindHotspot),   // before flow: the limit of a value rejects it
		engine.FamilySlot(core.KindFlow),
		engine.FamilySlot(core.KindIsolation), // after flow: calls in its queue have been admitted by flow
		engine.FamilySlot(core.KindAdaptive),  // after all rules with waits: it times running calls
		engine.FamilySlot(core.KindBreaker),   // after all rules that count: a probe is admitted by all others
		engine.FamilySlot(core.KindUpstream),  // behind breakers: a call that they refuse is no request to the server
		engine.FamilySlot(core.KindOutlier),   // last: the caller of an ejected endpoint may try another
	)
}
