package adaptive

import (
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// limit is the limit of one rule on one resource: what a learner has found out, and
// what follows for the gauge that enforces it. It outlives the revisions of its rule.
// It is safe for concurrent use.
//
// # When a limit is in force
//
// Each limit has a number, higher than those before. Who wants in claims units of the
// gauge under the limit and the number that word shows; the gauge heeds, under its own
// lock, the limit with the highest number that it was told. Under mu the gauge is told
// first and word is changed then. So whoever claims under an older limit is judged by
// the newer one, and none is admitted above the limit that is in force at that instant.
// Who is refused by an older limit sees that word has changed, and tries again.
//
// A limit may come to lie below what is in flight. Then nobody is admitted until so
// many have left that the next one fits; who is in keeps what he holds. A call of more
// units than the limit, and no more than the ceiling, is admitted when nothing is in
// flight: it runs alone. If it never did, and there were no others, nothing would be
// learned any more.
type limit struct {
	id   uint64        // which nothing else has, see owners
	word shared.Uint64 // the number and the limit in force

	mu      shared.Mutex // guards changing word, and what follows
	learner learner
	home    *node.StatisticNode // where the gauge is
	owner   any                 // of the gauge
}

// limitBits are enough for MaxCeiling.
const limitBits = 20

var ids shared.Uint64

func newLimit(r Rule) *limit {
	l := &limit{id: ids.Add(1), learner: newLearner(r.terms(), int64(r.Start))}
	l.word.Store(1<<limitBits | uint64(l.learner.level))
	return l
}

// rehearsal owns the gauge of a shadow rule in which only those count that it would
// admit; some is a rule that, on the overflow resource, counts only those whose name it
// matches. The types tell them from what other families own.
type (
	rehearsal uint64
	some      uint64
)

// owners name the gauges of what is in flight and of what would be admitted. They say
// whose limit it is, and not the ID of the rule: that may change while calls are on
// their way, which hold units of the gauge and are counted nowhere else yet.
func (l *limit) owners(apart bool) (all, rehearsed any) {
	if apart {
		return some(l.id), rehearsal(l.id)
	}
	return node.Everybody("adaptive " + strconv.FormatUint(l.id, 10)), rehearsal(l.id)
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

// enforce puts in force what the learner says. It needs mu. The gauge has no line, so
// nobody is woken. The numbers are this limit's alone, as its gauges are: who holds one
// for long must not find that others have used up those in between, see [stat.Gauge].
func (l *limit) enforce() {
	number := l.word.Load()>>limitBits + 1
	if g := l.home.Gauge(l.owner); g != nil {
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

// fits reports whether units, of which there may be so many, fit in a gauge as things
// stand.
func (l *limit) fits(n *node.StatisticNode, g *stat.Gauge, units, most int64) bool {
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

// take takes units of a gauge, of which there may be so many.
func (l *limit) take(n *node.StatisticNode, g *stat.Gauge, units, most int64) bool {
	for {
		word := l.word.Load()
		c := claim(word, units)
		join := func() bool {
			if alone(c, most) {
				return g.TryAcquire(units, units)
			}
			got, _ := g.Join(c)
			return got
		}
		got := join() || n.Settle(g) && join()
		if got || l.word.Load() == word {
			return got
		}
	}
}

func (l *limit) figures(resource string) core.LimitFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := core.LimitFigures{
		Resource:   resource,
		Limit:      l.learner.limit(),
		FloorRT:    time.Duration(l.learner.minRT),
		LimitRT:    time.Duration(l.learner.maxRT),
		Throughput: l.learner.throughput,
	}
	if !l.learner.watch {
		f.InForce = l.learner.level
	}
	return f
}
