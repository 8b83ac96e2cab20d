package adaptive

import (
	"fmt"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// limit is the limit of one rule on one resource: what a learner has found out, and what
// that means for the semaphore that enforces it. It outlives the revisions of its rule.
// It is safe for concurrent use.
//
// # When a limit is in force
//
// Each limit has a number, higher than those before. A call claims units of the
// semaphore under the limit and the number that word shows; the semaphore heeds, under its own
// lock, the limit with the highest number that it was told. Under mu the semaphore is told
// first and word is changed then. So a call that claims under an older limit is judged by
// the newer one, and none is admitted above the limit that is in force at that instant.
// A call that is refused by an older limit sees that word has changed, and tries again.
//
// A limit may come to lie below what is in flight. Then nobody is admitted until so
// many have left that the next one fits; a call that is in keeps what it holds. One of more
// units than the limit, and no more than the ceiling, is admitted when nothing is in
// flight: it runs alone. If it never did, and there were no others, nothing would be
// learned any more.
type limit struct {
	id   limitID       // which no other of the engine has, see owners
	word shared.Uint64 // the number and the limit in force

	mu      shared.Mutex // guards changing word, and what follows
	learner learner
	home    *node.StatisticNode // where the semaphore is
	owner   any                 // of the semaphore
}

// limitBits are enough for MaxCeiling.
const limitBits = 20

// limitID tells the limits of an engine apart, of all its revisions: the one whose table made the
// limit, and how many that had made by then. Of one revision there is one table that makes limits:
// they are made when nothing can fail any more.
type limitID struct{ revision, number uint64 }

func newLimit(id limitID, r Rule) *limit {
	l := &limit{id: id, learner: newLearner(r.terms(), int64(r.Start))}
	l.word.Store(1<<limitBits | uint64(l.learner.level))
	return l
}

// shadowOwner owns the semaphore of a shadow rule in which only those count that it would
// admit; some is a rule that, on the overflow resource, counts only those whose name it
// matches. The types tell them from what other families own.
type (
	shadowOwner limitID
	some        limitID
)

// owners name the semaphores of what is in flight and of what would be admitted. They say
// whose limit it is, and not the ID of the rule: that may change while calls are on
// their way, which hold units of the semaphore and are counted nowhere else yet.
func (l *limit) owners(private bool) (all, shadowBlocked any) {
	shadowBlocked = node.ShadowOwner{Of: shadowOwner(l.id)}
	if private {
		return some(l.id), shadowBlocked
	}
	return node.Shared(fmt.Sprintf("adaptive %d.%d", l.id.revision, l.id.number)), shadowBlocked
}

// adopt goes on under another revision of the rule.
func (l *limit) adopt(t terms, home *node.StatisticNode, owner any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.home, l.owner = home, owner
	l.learner.adopt(t)
	l.enforce()
}

// complete notes that a call has ended.
func (l *limit) complete(now, inFlight, took, units int64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learner.complete(now, inFlight, took, units, failed)
	if uint64(l.learner.level) != l.word.Load()&(1<<limitBits-1) {
		l.enforce()
	}
}

// enforce puts in force what the learner says. It needs mu. The semaphore has no queue, so
// no call is woken. The numbers are this limit's alone, as its semaphores are: a call that holds
// one for long must not find that others have used up those in between, see [stat.Semaphore].
func (l *limit) enforce() {
	number := l.word.Load()>>limitBits + 1
	if g := l.home.Semaphore(l.owner); g != nil {
		g.SetLimit(number, l.learner.level)
	}
	l.word.Store(number<<limitBits | uint64(l.learner.level))
}

// claim is what units want under the limit that a word shows.
func claim(word uint64, units int64) stat.Claim {
	return stat.Claim{Units: units, First: true, Limit: int64(word & (1<<limitBits - 1)), Revision: word >> limitBits}
}

// alone reports whether a call with this claim can only run alone.
func alone(c stat.Claim, most int64) bool { return c.Units > c.Limit && c.Units <= most }

// fits reports whether units, of which there may be so many, fit in a semaphore as things
// stand.
func (l *limit) fits(n *node.StatisticNode, g *stat.Semaphore, units, most int64) bool {
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

// take takes units of a semaphore on a lane, of which there may be so many.
func (l *limit) take(n *node.StatisticNode, g *stat.Semaphore, lane uint32, units, most int64) bool {
	for {
		word := l.word.Load()
		c := claim(word, units)
		if g.TryJoin(c.Units, c.Limit, c.Revision) { // Join would, by way of a copy of the claim
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
