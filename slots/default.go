package slots

import "github.com/penstock-go/penstock/core"

// Default returns the standard chain. The order is Sentinel's.
func Default() *core.Chain {
	return core.NewChain(
		NodeSelector{},   // first: everything after needs the call's place in the tree
		ClusterBuilder{}, // then the nodes that rules look at
		Log{},            // before the statistic, so that a refusal is told even if counting it fails
		Statistic{},      // before the checkers, so that it sees what they all decided
		Authority{},      // first of the checkers: it is the cheapest, and who may not call at all takes nothing
		System{},         // before what looks at one resource: who finds the house full needs no table
		Hotspot{},        // before flow: a value that is over its limit is refused as such, not by the limit of all
		Flow{},
		Isolation{}, // after flow: who waits in line here has been let in there
		Adaptive{},  // after all that may wait: it counts and times what runs
		Breaker{},   // after all that count: a probe is only taken for a call that everybody else admits
		Outlier{},   // last, and so are its probes: who is told that a callee is out may try another one
	)
}
