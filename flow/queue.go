package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// queue is a rule's queue of turns, with its own lock. It survives changes of the rule: calls keep their
// turns, and only the next cost changes. Safe for concurrent use.
type queue struct {
	mu    shared.Mutex
	turns meter.Pacer
	most  int64 // units of the largest call under a rule with a unit
}

func newQueue() *queue {
	q := new(queue)
	q.turns = meter.MakePacer(&q.mu)
	return q
}

// fits returns the wait of a call, prioritized or not, and whether it is at most maxWait.
func (q *queue) fits(now int64, cost meter.Moment, maxWait time.Duration, first bool) (wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait = q.turns.Wait(now, cost, first)
	return wait, wait <= maxWait
}

// take takes the next turn for the call if the wait is at most maxWait.
func (q *queue) take(inv *engine.Invocation, cost meter.Moment, maxWait time.Duration, awaited bool) (wait time.Duration, ok bool) {
	q.mu.Lock()
	wait, ok = inv.TakeTurn(&q.turns, cost, maxWait, awaited)
	q.mu.Unlock()
	return wait, ok
}

// A call of a rule with a unit reserves its turn, and here what it paid for with that turn: its
// Undo has the time that each unit takes.

// reserve records units that the call has taken a turn for, at perUnit ns each.
func (q *queue) reserve(inv *engine.Invocation, units int64, perUnit float64, unit string) {
	q.mu.Lock()
	q.most = max(q.most, units)
	q.mu.Unlock()
	inv.Reserve(engine.Reservation{Holder: q, Units: units, Undo: int64(math.Float64bits(perUnit))})
	inv.SettleBy(unit)
}

// GiveBack does nothing: the call gives back its turn.
func (q *queue) GiveBack(*engine.Reservation, int64) {}

// Refund does nothing: the call has already waited for these units.
func (q *queue) Refund(*engine.Reservation, int64, int64) {}

// Charge delays all calls that come from now on by what this one used beyond its reservation.
func (q *queue) Charge(r *engine.Reservation, n, now int64) (forgiven int64) {
	cost := meter.Cost(n, math.Float64frombits(uint64(r.Undo)))
	q.mu.Lock()
	q.turns.Charge(now, cost)
	q.mu.Unlock()
	return 0
}

// retryAfter returns the time until the next unit would be accepted, prioritized or not; 0 or
// less if it would be accepted now.
func (q *queue) retryAfter(now int64, cost meter.Moment, maxWait time.Duration) time.Duration {
	wait, _ := q.fits(now, cost, maxWait, false)
	return wait - maxWait
}

// setBurst sets the burst of the rule.
func (q *queue) setBurst(now int64, r Rule) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.Burst > 0 && r.Threshold > 0 {
		unit := r.unitCost()
		q.turns.SetBurst(now, meter.BurstTime(int64(r.Burst), unit), unit)
	} else {
		q.turns.SetBurst(now, 0, meter.Moment{})
	}
}

// idle reports whether the queue can be dropped: a new one would admit nothing earlier, not even
// the largest call. With a unit that is the largest one so far: one of 2^40 bytes can take decades.
func (q *queue) idle(now int64, perUnit float64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.Rested(now, meter.Cost(max(stat.MaxUnits, q.most), perUnit))
}

// left returns the number of turns left within maxWait, or nil if that is unknown: prioritized calls
// have other turns.
func (q *queue) left(now int64, cost meter.Moment, maxWait time.Duration, first bool) *int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if first && !q.turns.Empty() {
		return nil
	}
	left := q.turns.Left(now, cost, maxWait)
	return &left
}

func (q *queue) follow(last meter.Moment) {
	q.mu.Lock()
	q.turns.NotBefore(last)
	q.mu.Unlock()
}

// paid returns the end of the time that the turns take up.
func (q *queue) paid() meter.Moment {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.Paid()
}
