package adaptive

import (
	"fmt"

	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shed"
	"github.com/penstock-go/penstock/node"
)

// limit is the limit of one rule on one resource: a learner, and the enforcement of its limit by
// the semaphore. It survives the revisions of its rule. Safe for concurrent use.
//
// # When a limit is in force
//
// Each limit has a number, higher than those before. A call claims units of the semaphore under the
// limit and the number in word; the semaphore obeys, under its own lock, the limit with the highest
// number that it was given. A change gives the limit to the semaphore first and stores word after
// that, both under mu. So a call that claims under an older limit is checked against the newer one,
// and none is admitted above the limit in force at that instant. A call that is refused by an older
// limit sees that word has changed, and retries.
//
// A limit may fall below the units in flight. Then no call is admitted until enough have ended for
// the next one to fit; admitted calls keep their units. A call of more units than the limit, but no
// more than the ceiling, is admitted when nothing is in flight: it runs alone. If it never ran, and
// there were no other calls, nothing more would be learned.
type limit struct {
	id   limitID       // unique in the engine; see owners
	word shared.Uint64 // the number and the limit in force

	mu      shared.Mutex // guards the changes of word, and the fields below
	learner learner
	home    *node.StatisticNode // the node that has the semaphore
	owner   any                 // of the semaphore
	gate    *shed.Gate          // for rules with a shed order; nil before the first, and then kept
}

// limitBits are enough for MaxCeiling.
const limitBits = 20

// limitID identifies a limit across all revisions of an engine: the revision whose table created the
// limit, and a counter within that table. Only one table of a revision creates limits, since that
// happens when nothing can fail anymore.
type limitID struct{ revision, number uint64 }

func newLimit(id limitID, r Rule) *limit {
	l := &limit{id: id, learner: newLearner(r.terms(), int64(r.Start))}
	l.word.Store(1<<limitBits | uint64(l.learner.level))
	return l
}

// shadowOwner owns the semaphore in which a shadow rule counts only calls that it would admit; some
// is a rule that, on the overflow resource, counts only names that it matches. The types
// distinguish them from owners of other families.
type (
	shadowOwner limitID
	some        limitID
)

// owners returns the owners of the semaphores for units in flight and for units that would be
// admitted. They identify the limit, not the ID of the rule: the ID may change while calls are
// under way that hold units of the semaphore and are not yet counted anywhere else.
func (l *limit) owners(private bool) (all, shadowBlocked any) {
	shadowBlocked = meter.ShadowOwner{Of: shadowOwner(l.id)}
	if private {
		return some(l.id), shadowBlocked
	}
	return meter.Shared(fmt.Sprintf("adaptive %d.%d", l.id.revision, l.id.number)), shadowBlocked
}

// adopt continues under another revision of the rule.
func (l *limit) adopt(t terms, home *node.StatisticNode, owner any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.home, l.owner = home, owner
	l.learner.adopt(t)
	l.enforce()
}

// complete records the end of a call.
func (l *limit) complete(now, inFlight, took, units int64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learner.complete(now, inFlight, took, units, failed)
	if uint64(l.learner.level) != l.word.Load()&(1<<limitBits-1) {
		l.enforce()
	}
}

// enforce puts the learner's limit into force. It needs mu. The semaphore has no queue, so no call
// is woken. The numbers belong to this limit alone, as do its semaphores: a call that holds a number
// for a long time must not find the numbers in between used up by other limits; see
// [meter.Semaphore].
func (l *limit) enforce() {
	number := l.word.Load()>>limitBits + 1
	if g := l.home.Meters().Semaphore(l.owner); g != nil {
		g.SetLimit(number, l.learner.level)
	}
	l.word.Store(number<<limitBits | uint64(l.learner.level))
	l.setGateLocked()
}

// claim returns a claim of units under the limit in a word.
func claim(word uint64, units int64) meter.Claim {
	return meter.Claim{Units: units, First: true, Limit: int64(word & (1<<limitBits - 1)), Revision: word >> limitBits}
}

// alone reports whether a call with this claim can only run alone.
func alone(c meter.Claim, most int64) bool { return c.Units > c.Limit && c.Units <= most }

// fits reports whether units fit in a semaphore as of now; a call may have at most most units.
func (l *limit) fits(n *node.StatisticNode, g *meter.Semaphore, units, most int64) bool {
	for {
		word := l.word.Load()
		c := claim(word, units)
		may := func() bool { return g.MayJoin(c) || alone(c, most) && g.InUse() == 0 }
		if may() || n.Settle(g) && may() {
			return true
		}
		if l.word.Load() == word {
			return false
		}
	}
}

// take takes units of a semaphore on a lane; a call may have at most most units.
func (l *limit) take(n *node.StatisticNode, g *meter.Semaphore, lane uint32, units, most int64) bool {
	for {
		word := l.word.Load()
		c := claim(word, units)
		if g.TryJoin(c.Units, c.Limit, c.Revision) { // Join would do the same, but copies the claim
			return true
		}
		join := func() bool {
			if alone(c, most) {
				return g.TryAcquire(lane, units, units)
			}
			got, _ := g.Join(lane, c)
			return got
		}
		got := join() || n.Settle(g) && join()
		if got || l.word.Load() == word {
			return got
		}
	}
}
