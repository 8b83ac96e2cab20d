package sharing

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/cluster"
)

// base holds what limits of every kind need: where the key is, the mutex, and the calls that wait.
type base struct {
	place
	m *Member

	mu       sync.Mutex // of the whole limit; only Member.mu is locked by its holder
	waiters  []*waiter  // calls, in their order
	posted   bool       // the next flush makes a command
	inFlight bool       // a command is on its way
	gone     bool       // the member has left the cluster
	broken   broken
}

// unreachableLocked reports whether the limit has to decide without the store.
func (b *base) unreachableLocked() bool { return b.gone || b.broken.on || b.shard().unreachable.Load() }

// canPostLocked reports whether the store may be sent a command.
func (b *base) canPostLocked(now int64) bool {
	return !b.inFlight && !b.gone && now >= b.broken.retryAt
}

// withdrawLocked removes a call from those that wait, and reports whether nobody has decided for it.
func (b *base) withdrawLocked(x *waiter) bool {
	if x.decided {
		return false
	}
	b.waiters = slices.DeleteFunc(b.waiters, func(y *waiter) bool { return x == y })
	return true
}

// waitingLocked sums up the calls that wait.
func (b *base) waitingLocked() (all waiting) {
	for i, x := range b.waiters {
		if i == 0 {
			all.first = x.need
		}
		all.units += x.need.Units
	}
	return all
}

// ofAll returns the threshold of all members together.
func (m *Member) ofAll(threshold float64, scope cluster.Scope) float64 {
	if scope == cluster.PerMember {
		threshold *= float64(m.Members())
	}
	return threshold
}
