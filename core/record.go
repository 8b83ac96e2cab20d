package core

import "github.com/penstock-go/penstock/node"

type phase uint8

const (
	phasePassed phase = iota
	phaseBlocked
	phaseCompleted
)

// record runs the recorders of a phase. One that panics is passed over; the
// others still run.
func (inv *Invocation) record(p phase, b *BlockError) { inv.recordRest(p, 0, b) }

// recordRest is record from step number i on.
func (inv *Invocation) recordRest(p phase, i int, b *BlockError) {
	for i >= 0 {
		i = inv.recordFrom(p, i, b)
	}
	inv.look()
}

// look brings back the nodes that left while the call was counted on them.
func (inv *Invocation) look() {
	if node.AnyLeft(inv.resource.ClusterNode, inv.Nodes()) {
		inv.engine.restore(inv)
	}
}

// recordFrom runs the recorders from number i on; before those of the exit the
// clock is read, which may panic as well. It returns the number to go on with
// after a panic, or -1.
func (inv *Invocation) recordFrom(p phase, i int, b *BlockError) (next int) {
	defer func() {
		if next == 0 {
			next = inv.interrupted(recover(), i, func() { inv.unrecorded(p, i, b) })
		}
	}()
	chain := inv.engine.chain
	switch p {
	case phasePassed:
		for ; i < len(chain.passed); i++ {
			chain.passed[i].Passed(inv)
		}
	case phaseBlocked:
		for ; i < len(chain.blocked); i++ {
			chain.blocked[i].Blocked(inv, b)
		}
	case phaseCompleted:
		if i == 0 {
			// A clock that panics leaves the time at which the call was let in.
			inv.now = max(inv.now, inv.engine.Now())
			i++
		}
		completed := inv.bound.completed[inv.ended]
		for ; i <= len(completed); i++ {
			completed[i-1].Completed(inv)
		}
	}
	return -1
}

// unrecorded ends a call whose goroutine ends in recorder number i of a phase.
func (inv *Invocation) unrecorded(p phase, i int, b *BlockError) {
	if p == phasePassed {
		inv.abandon(i + 1)
		return
	}
	inv.recordRest(p, i+1, b)
	if p == phaseCompleted {
		inv.settle()
	}
}
