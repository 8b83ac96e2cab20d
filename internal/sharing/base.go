package sharing

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/cluster"
)

// base is what limits of every kind have.
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

// away reports whether the store is to be done without. It needs mu.
func (b *base) away() bool { return b.gone || b.broken.on || b.shard().away.Load() }

// canPost reports whether the store may be sent a command. It needs mu.
func (b *base) canPost(now int64) bool { return !b.inFlight && !b.gone && now >= b.broken.retryAt }

// withdraw removes a call from those that wait, and reports whether nobody has decided for it. It needs mu.
func (b *base) withdraw(x *waiter) bool {
	if x.decided {
		return false
	}
	b.waiters = slices.DeleteFunc(b.waiters, func(y *waiter) bool { return x == y })
	return true
}

// waiting is the calls that wait. It needs mu.
func (b *base) waiting() (all waiting) {
	for i, x := range b.waiters {
		if i == 0 {
			all.first = x.need
		}
		all.units += x.need.Units
	}
	return all
}

// ofAll is what all members together have of a threshold.
func (m *Member) ofAll(threshold float64, scope cluster.Scope) float64 {
	if scope == cluster.PerMember {
		threshold *= float64(m.Members())
	}
	return threshold
}
