package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// throttle is a rule's queue, with its own lock. It survives changes of the rule: calls keep their
// turns, and only the next cost changes. Safe for concurrent use.
type throttle struct {
	mu    shared.Mutex
	turns meter.Pacer
}

func newThrottle() *throttle {
	t := new(throttle)
	t.turns = meter.MakePacer(&t.mu)
	return t
}

// fits returns the wait of a call, prioritized or not, and whether it is at most maxWait.
func (t *throttle) fits(now int64, cost meter.Moment, maxWait time.Duration, first bool) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = t.turns.Wait(now, cost, first)
	return wait, wait <= maxWait
}

// take takes the next turn for the call if the wait is at most maxWait.
func (t *throttle) take(inv *engine.Invocation, cost meter.Moment, maxWait time.Duration, awaited bool) (wait time.Duration, ok bool) {
	t.mu.Lock()
	wait, ok = inv.TakeTurn(&t.turns, cost, maxWait, awaited)
	t.mu.Unlock()
	return wait, ok
}

// retryAfter returns the time until the next unit would be accepted, prioritized or not; 0 or
// less if it would be accepted now.
func (t *throttle) retryAfter(now int64, cost meter.Moment, maxWait time.Duration) time.Duration {
	wait, _ := t.fits(now, cost, maxWait, false)
	return wait - maxWait
}

// idle reports whether the throttle can be dropped: a new one would admit nothing earlier, not even
// the largest call.
func (t *throttle) idle(now int64, perUnit float64) bool {
	wait, _ := t.fits(now, meter.Cost(stat.MaxUnits, perUnit), 0, false)
	return wait == 0
}

// left returns the number of turns left within maxWait, or nil if that is unknown: prioritized calls
// have other turns.
func (t *throttle) left(now int64, cost meter.Moment, maxWait time.Duration, first bool) *int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first && !t.turns.Empty() {
		return nil
	}
	left := t.turns.Last().TurnsWithin(now, cost, maxWait)
	return &left
}

func (t *throttle) follow(last meter.Moment) {
	t.mu.Lock()
	t.turns.NotBefore(last)
	t.mu.Unlock()
}

func (t *throttle) last() meter.Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turns.Last()
}
