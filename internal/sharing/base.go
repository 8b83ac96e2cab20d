package sharing

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/cluster"
)

// base holds the state that limits of every kind share: the key's place, the mutex, and the waiting
// calls.
type base struct {
	place
	m *Member

	mu       sync.Mutex // guards the whole limit; its holder may lock only Member.mu
	waiters  []*waiter  // in order of arrival
	posted   bool       // the next flush sends a command
	inFlight bool       // a command is in flight
	gone     bool       // the member has left the cluster
	broken   broken
}

// unreachableLocked reports whether the limit must decide without the store.
func (b *base) unreachableLocked() bool { return b.gone || b.broken.on || b.shard().unreachable.Load() }

// canPostLocked reports whether a command may be sent.
func (b *base) canPostLocked(now int64) bool {
	return !b.inFlight && !b.gone && now >= b.broken.retryAt
}

// withdrawLocked removes a waiting call, and reports whether it was still undecided.
func (b *base) withdrawLocked(x *waiter) bool {
	if x.decided {
		return false
	}
	b.waiters = slices.DeleteFunc(b.waiters, func(y *waiter) bool { return x == y })
	return true
}

// waitingLocked summarizes the waiting calls.
func (b *base) waitingLocked() (all waiting) {
	for i, x := range b.waiters {
		if i == 0 {
			all.first = x.need
		}
		all.units += x.need.Units
	}
	return all
}

// ofAll returns the threshold for all members together.
func (m *Member) ofAll(threshold float64, scope cluster.Scope) float64 {
	if scope == cluster.PerMember {
		threshold *= float64(m.Members())
	}
	return threshold
}
