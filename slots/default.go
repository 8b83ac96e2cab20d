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
		blockLog{},       // before the statistic, so that a refusal is logged even if counting it fails
		statistic{},      // before the rules, so that it sees what they all decided

		engine.FamilySlot(core.KindAuthority), // first of the rules: the cheapest, and a stranger takes nothing
		engine.FamilySlot(core.KindSystem),    // before what looks at one resource: a full house needs no table
		engine.FamilySlot(core.KindHotspot),   // before flow: a value beyond its limit is refused by that limit
		engine.FamilySlot(core.KindFlow),
		engine.FamilySlot(core.KindIsolation), // after flow: a call that waits in the queue here has been let in there
		engine.FamilySlot(core.KindAdaptive),  // after all that may wait: it counts and times what runs
		engine.FamilySlot(core.KindBreaker),   // after all that count: a probe is for a call that all others admit
		engine.FamilySlot(core.KindOutlier),   // last: a caller that learns that an endpoint is out may try another one
	)
}
