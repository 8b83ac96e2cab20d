//go:build sim

package meter

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// Calls of two tenants and two levels, of several costs, join a queue in shares, some with an older
// reading of the clock, and a few outside shares; they wait for their turns, and some leave. Two calls
// that run are never closer than the later one's cost, no call in a share runs after its deadline, and
// each runs exactly at its turn, so no wake-up is lost. Nothing is left at the end.
func TestSimTurnsOfShares(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		const cost = 10 * int64(1e6)
		var mu shared.Mutex
		q := MakePacer(&mu)
		clock := s.Clock()
		clock.Set(epoch)
		late := s.Rand.IntN(4) == 0
		sharing := &Sharing{By: "a", PerShare: 1 + s.Rand.IntN(4), MaxShares: 1 + s.Rand.IntN(2), Levels: s.Rand.IntN(2) == 0}
		var ran []spacedRun
		for range 3 + s.Rand.IntN(5) {
			x := &sleeper{Context: context.Background()}
			x.Turn = MakeTurn(x)
			x.Awaited = true
			c := &ShareTurn{
				Cost: Moment{ns: []int64{cost, cost, cost / 2, 3 * cost}[s.Rand.IntN(4)]}, First: s.Rand.IntN(4) == 0,
				MaxWait: time.Duration(s.Rand.Int64N(6) * cost), Sharing: sharing, Tenant: *tenant(s.Rand.IntN(2)),
			}
			c.Tenant.Level = s.Rand.IntN(2)
			plain := s.Rand.IntN(8) == 0
			comes := []int64{0, 0, 0, cost / 2, cost, 2 * cost}[s.Rand.IntN(6)]
			older := int64(0)
			if late {
				older = s.Rand.Int64N(2) * cost / 2
			}
			s.Go(func() {
				if comes > 0 {
					_ = clock.Sleep(context.Background(), time.Duration(comes))
				}
				runs := false
				if now := clock.Now() - older; plain {
					runs = x.waitsOutsideShares(s, &q, now, c.Cost)
				} else {
					runs = x.waitsInShare(s, &q, now, c)
				}
				if !runs {
					return
				}
				if now := clock.Now(); !late && now != x.at.ns {
					s.Failf("a call runs at %d, its turn is at %d", now, x.at.ns)
				}
				ran = append(ran, spacedRun{at: x.at, cost: c.Cost})
				x.Drop(clock.Now())
			})
			if s.Rand.IntN(3) == 0 {
				x.leavesAfter(s, s.Rand.Int64N(8)*cost/2)
			}
		}
		s.Check(func() {
			(&spacedRuns{all: ran}).checkDistances(s)
			if !q.Empty() || q.Last() != q.ran || q.awaited != 0 {
				s.Failf("calls are left: %d", q.awaited)
			}
		})
	})
}

func (x *sleeper) waitsInShare(s *schedules.Schedule, q *Pacer, now int64, c *ShareTurn) (runs bool) {
	q.lock.Lock()
	x.until = math.MaxInt64
	_, may := q.MayQueueShare(now, c)
	until, _, ok := q.QueueShare(&x.Turn, now, c)
	x.until, x.moved = min(x.until, until), false
	q.lock.Unlock()
	if !ok {
		return false
	}
	if !may {
		s.Failf("a call joins that was not to")
	}
	if x.state == waits || x.inQueue {
		if !x.sleeps(s) {
			return false
		}
	}
	if x.at.ns > x.deadline && x.waiter.share != nil {
		s.Failf("a call's turn is at %d, its deadline was %d", x.at.ns, x.deadline)
	}
	return true
}

func (x *sleeper) waitsOutsideShares(s *schedules.Schedule, q *Pacer, now int64, cost Moment) bool {
	q.lock.Lock()
	at, wait := q.Next(now, cost, false)
	if x.at = at; wait == 0 {
		q.Grant(at)
		q.lock.Unlock()
		return true
	}
	x.until = at.ns
	q.Queue(&x.Turn, now, at, cost, false)
	q.lock.Unlock()
	return x.sleeps(s)
}

// sleeps makes the call wait until its turn, and reports whether it runs.
func (x *sleeper) sleeps(s *schedules.Schedule) bool {
	for {
		_ = s.Clock().Sleep(x, time.Duration(x.until-s.Clock().Now()))
		now := s.Clock().Now()
		if x.left && !x.moved {
			x.Leave(now)
			return false
		}
		x.until, x.moved = math.MaxInt64, false
		due := x.Come(now, now)
		if lost, _ := x.Lost(); lost {
			return false
		}
		if due <= now {
			return true
		}
		x.until = min(x.until, due)
	}
}
