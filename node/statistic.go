package node

import (
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// StatisticNode counts calls and, if a rule uses it, meters them. It is safe for concurrent use.
//
// Fields that every call reads come first, here and in the nodes that embed it, so that they fit in
// one or two cache lines.
type StatisticNode struct {
	// retired is set before a node leaves its registry. A call that counts on a node checks it
	// afterwards; see Registry.
	retired shared.Bool

	seeding shared.Bool               // a meter was published and is not seeded yet
	meters  shared.Pointer[meter.Set] // nil while no rule looks

	stat.Counters

	mu   shared.Mutex // guards replacing and seeding meters
	past *stat.Past   // initial contents of new windows (see Remember); guarded by mu
}

// NewStatisticNode returns a node by itself, for tests.
func NewStatisticNode(layout *stat.Layout) *StatisticNode {
	n := new(StatisticNode)
	n.Init(layout)
	return n
}

// Retired reports whether the node was removed from the tree. A caller that counted on it must
// bring it back: see [Registry.Restore], and [Tree.RestoreCall] for a call node.
func (n *StatisticNode) Retired() bool { return n.retired.Load() }

// Idle reports whether the node can be evicted: nothing is in flight, nothing was counted in the
// second window, the last minute or any meter, and nothing is borrowed.
func (n *StatisticNode) Idle(now int64) bool {
	return n.Counters.Idle(now) && n.Meters().Idle(now, n.Settle)
}

// Waiting returns the number of waiting units: borrowed from later buckets (the maximum over the
// node's windows, since one call borrows from all of them), or in a queue for permits. Like reading
// the node's counters, it makes the meters of an idle node release memory needed only under load.
func (n *StatisticNode) Waiting(now int64) int64 {
	if m := n.meters.Load(); m != nil && n.Counters.Idle(now) {
		m.Rest()
	}
	var most int64
	for _, m := range n.Meters().Windows() {
		most = max(most, m.Waiting(now))
	}
	for _, g := range n.Meters().Semaphores() {
		if g.All() { // no call waits for a shadow rule
			most += g.UnitsQueued()
		}
	}
	return most
}
