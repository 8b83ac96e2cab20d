package slots

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// Default returns the standard chain. The order is Sentinel's.
func Default() *Chain {
	return NewChain(
		nodeSelector{},   // first: everything after needs the call's place in the tree
		clusterBuilder{}, // then the nodes that rules look at
		blockLog{},       // before the statistic, so that a rejection is logged even if counting it fails
		statistic{},      // before the rules, so that it records their combined decision

		engine.FamilySlot(core.KindAuthority), // first of the rules: the cheapest, and an unauthorized caller takes nothing
		engine.FamilySlot(core.KindSystem),    // before rules for one resource: an overloaded system needs no lookup
		engine.FamilySlot(core.KindHotspot),   // before flow: a value beyond its limit is rejected by that limit
		engine.FamilySlot(core.KindFlow),
		engine.FamilySlot(core.KindIsolation), // after flow: a call that waits in the queue here has been admitted there
		engine.FamilySlot(core.KindAdaptive),  // after all rules with waits: it counts and times running calls
		engine.FamilySlot(core.KindBreaker),   // after all rules that count: a probe is for a call that all others admit
		engine.FamilySlot(core.KindOutlier),   // last: a caller that learns that an endpoint is out may try another one
	)
}
