package node

import (
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// StatisticNode counts calls and, where a rule looks, meters them. It is safe
// for concurrent use.
//
// What every call looks at stands first, here and in the nodes that begin with it: in
// one or two cache lines.
type StatisticNode struct {
	// retired is raised before a node leaves its registry. A call that counts on a node
	// looks at it afterwards, see Registry.
	retired shared.Bool

	seeding shared.Bool            // a meter is published that was not seeded yet
	meters  shared.Pointer[meters] // nil while no rule looks

	stat.Counters

	mu   shared.Mutex // guards replacing and seeding meters
	past *stat.Past   // that new windows begin with, see Remember; guarded by mu
}

// NewStatisticNode returns a node that stands alone, for tests and for counters
// outside the tree.
func NewStatisticNode(layout *stat.Layout) *StatisticNode {
	n := new(StatisticNode)
	n.Init(layout)
	return n
}

// Retired reports whether the node has left the tree. A caller that counted on
// it must bring it back: see [Registry.Restore], and [Tree.RestoreCall] for a call node.
func (n *StatisticNode) Retired() bool { return n.retired.Load() }

// Idle reports whether the node can leave: nothing in flight, nothing counted in
// the second window, the last minute or any meter, and nothing borrowed.
func (n *StatisticNode) Idle(now int64) bool {
	return n.Counters.Idle(now) && n.metersIdle(now)
}

// Waiting is the units that wait: borrowed from coming buckets (the most that any of
// the node's windows holds, since one call borrows from all of them), or in a queue for
// permits. To ask that is to read the node: if it is idle, its meters let go of what they need
// under load, as counters do that are read.
func (n *StatisticNode) Waiting(now int64) int64 {
	if m := n.meters.Load(); m != nil && n.Counters.Idle(now) {
		m.rest()
	}
	var most int64
	for _, m := range n.Windows() {
		most = max(most, m.Waiting(now))
	}
	for _, g := range n.Semaphores() {
		if g.All() { // nobody waits for a shadow rule
			most += g.UnitsQueued()
		}
	}
	return most
}
