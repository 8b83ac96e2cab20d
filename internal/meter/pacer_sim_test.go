//go:build sim

package meter

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// sleeper is a call that waits for its turn on the clock of a schedule. It is its own context,
// which ends when the call should look.
type sleeper struct {
	context.Context
	Turn
	until int64 // time of its next look
	moved bool  // woken to look earlier
	left  bool  // its caller has disconnected
}

func (x *sleeper) WakeAt(to int64) {
	if to < x.until {
		x.until, x.moved = to, true
	}
}

func (x *sleeper) Err() error {
	if x.moved || x.left {
		return context.Canceled
	}
	return nil
}

// leavesAfter makes the call's caller disconnect after that time.
func (x *sleeper) leavesAfter(s *schedules.Schedule, d int64) {
	clock := s.Clock()
	s.Named("client", func() {
		if d > 0 {
			_ = clock.Sleep(context.Background(), time.Duration(d))
		}
		clock.Now()
		x.left = true
	})
}

// spacedRun is a call that has run.
type spacedRun struct {
	number   int // in the order of arrival
	first    bool
	at, cost Moment
}

// spacedRuns has the outcomes of the calls of a queue.
type spacedRuns struct {
	came  int
	all   []spacedRun
	gap   int64 // time of the latest departure
	loose bool  // turns may have been lost, or the clock read late
}

// known bug 16, 49, 128, 139, 140, 141: calls of several sizes join a queue, at one instant or one
// after the other, some with an older reading of the clock; they wait for their turns, and some
// leave before or after their turn is due, in every order. Two calls that run are never closer than
// the later one's cost. They run in the order of arrival, except that prioritized calls may run
// earlier. No call runs later than announced, except that an ordinary call may run later by at most
// the cost of the calls that it found in the queue, plus its own. No call waits for a turn that
// nobody takes: a call runs when its cost has passed since the previous call, when it arrived, or
// when a call before it left. With a burst, the same holds for turns, which may lie in the past by the
// time of the burst when a call arrives.
func TestSimTurns(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		const cost = 10 * int64(1e6)
		var mu shared.Mutex
		q := MakePacer(&mu)
		clock := s.Clock()
		clock.Set(epoch)
		runs := &spacedRuns{loose: s.Rand.IntN(4) == 0, gap: math.MinInt64}
		refuses := runs.loose && s.Rand.IntN(2) == 0
		maxWait := (1 + s.Rand.Int64N(6)) * cost
		prioritized := s.Rand.IntN(3) // of four
		if s.Rand.IntN(3) == 0 {
			q.SetBurst(epoch, (1+s.Rand.Int64N(3))*cost, Moment{ns: cost})
		}
		for range 3 + s.Rand.IntN(4) {
			x := &sleeper{Context: context.Background()}
			x.Turn = MakeTurn(x)
			first := s.Rand.IntN(4) < prioritized
			c := Moment{ns: []int64{cost, cost, cost / 2, 3 * cost}[s.Rand.IntN(4)]}
			comes := []int64{0, 0, 0, cost / 2, cost, 2 * cost}[s.Rand.IntN(6)]
			late, refused := int64(0), refuses && s.Rand.IntN(3) == 0
			if runs.loose {
				late = s.Rand.Int64N(2) * cost / 2
			}
			s.Go(func() {
				if comes > 0 {
					_ = clock.Sleep(context.Background(), time.Duration(comes))
				}
				x.waitsIn(s, &q, runs, clock.Now()-late, spacedRun{cost: c, first: first}, maxWait, refused)
			})
			if s.Rand.IntN(2) == 0 {
				x.leavesAfter(s, s.Rand.Int64N(8)*cost/2)
			}
		}
		s.Check(func() {
			runs.check(s)
			if q.queue.length != 0 || q.queue.cost != (Moment{}) || q.queue.front != (Moment{}) {
				s.Failf("%d calls are left, of %v", q.queue.length, q.queue.cost)
			}
		})
	})
}

// waitsIn makes a call wait in a queue.
func (x *sleeper) waitsIn(s *schedules.Schedule, q *Pacer, runs *spacedRuns, now int64, run spacedRun, maxWait int64, refused bool) {
	q.lock.Lock()
	at, wait := q.Next(now, run.cost, run.first)
	if int64(wait) > maxWait {
		q.lock.Unlock()
		return
	}
	runs.came++
	run.number, run.at = runs.came, at
	announced := at.ns
	if !run.first { // the maximum that it may be pushed back
		announced += run.cost.ns
		for o := q.queue.head; o != nil; o = o.after {
			if !o.place.first {
				announced += o.cost.ns
			}
		}
	}
	if wait == 0 {
		before := q.Grant(at)
		if !refused {
			runs.run(s, run, now, now, now)
		}
		q.lock.Unlock()
		if refused {
			q.GiveUp(at, before, now)
		}
		return
	}
	x.until = at.ns
	q.Queue(&x.Turn, now, at, run.cost, run.first)
	q.lock.Unlock()
	came := now
	for {
		_ = s.Clock().Sleep(x, time.Duration(x.until-s.Clock().Now()))
		now = s.Clock().Now()
		if x.left && !x.moved {
			runs.gap = now
			x.Leave(now)
			return
		}
		x.until, x.moved = math.MaxInt64, false
		due := x.Come(now, now)
		if due <= now {
			break
		}
		x.until = min(x.until, due)
	}
	if refused {
		x.Leave(now)
		return
	}
	run.at = x.at
	runs.run(s, run, came, announced, now)
	x.Drop(now)
}

// run records a call that runs. The clock of a schedule advances only when no goroutine can
// continue, so the call runs at exactly that time.
func (r *spacedRuns) run(s *schedules.Schedule, x spacedRun, came, announced, now int64) {
	due := max(came, r.gap)
	for _, y := range r.all { // those with passed turns run in any order
		due = max(due, y.at.plus(x.cost).ns)
	}
	r.all = append(r.all, x)
	switch {
	case now > max(announced, came) && !r.loose, x.at.ns > announced:
		s.Failf("call %d runs at %d, later than announced: %d", x.number, now, announced)
	case now > due && !r.loose:
		s.Failf("call %d runs at %d, but could have run at %d", x.number, now, due)
	}
}

// check verifies the order and the distances.
func (r *spacedRuns) check(s *schedules.Schedule) {
	r.checkDistances(s)
	for i, x := range r.all {
		for _, y := range r.all[i+1:] {
			if y.number < x.number && (y.first || !x.first) {
				s.Failf("call %d, prioritized %v, runs before call %d, prioritized %v", x.number, x.first, y.number, y.first)
			}
		}
	}
}

// checkDistances verifies that no two calls are closer than the later one's cost.
func (r *spacedRuns) checkDistances(s *schedules.Schedule) {
	slices.SortStableFunc(r.all, func(a, b spacedRun) int {
		if a.at.Later(b.at) != a.at {
			return -1
		}
		return 1
	})
	for i, x := range r.all[min(1, len(r.all)):] {
		if next := r.all[i].at.plus(x.cost); x.at.Later(next) != x.at {
			s.Failf("call %d has its turn at %v, call %d before it at %v", x.number, x.at, r.all[i].number, r.all[i].at)
		}
	}
}
