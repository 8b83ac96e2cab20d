package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// bucket is the token bucket of a rule, with a lock of its own. It survives changes of the rule:
// tokens that were taken stay taken, and are refilled at the new rate. A call that is still decided by
// the old rule takes from the same bucket, under the old size but at the new rate; so the new rule
// sees the call. Safe for concurrent use.
type bucket struct {
	mu      shared.Mutex
	tokens  meter.TokenBucket
	refunds *meter.Refunds // nil for a rule without a unit
}

// newBucket returns a full bucket for the rule.
func newBucket(r Rule) *bucket {
	b := &bucket{tokens: meter.MakeTokenBucket()}
	if r.Unit != "" {
		b.refunds = new(meter.Refunds)
	}
	b.tokens.SetUnit(0, r.unitCost())
	return b
}

// size returns the rule's bucket size in units.
func (r Rule) size() int64 { return family.BucketSize(r.Burst) }

// unitCost returns the time it takes the rule's bucket to gain one unit.
func (r Rule) unitCost() meter.Moment { return meter.UnitCost(r.Interval, r.Threshold) }

func (b *bucket) fits(now, n, size int64) bool {
	b.mu.Lock()
	ok := b.tokens.Fits(now, n, size)
	b.mu.Unlock()
	return ok
}

func (b *bucket) take(now, n, size int64) (taken meter.Taken, ok bool) {
	b.mu.Lock()
	taken, ok = b.tokens.Take(now, n, size)
	b.mu.Unlock()
	return taken, ok
}

// takeFor is like take, for a rule with a unit. It returns the number of the take.
func (b *bucket) takeFor(now, n, size int64) (take int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.TakeFor(b.refunds, now, n, size)
}

// Refund returns the tokens that a call of a rule with a unit didn't use.
func (b *bucket) Refund(r *engine.Reservation, n, _ int64) {
	b.mu.Lock()
	b.tokens.Refund(b.refunds, r.Token, n)
	b.mu.Unlock()
}

// Charge takes tokens that a call used beyond its reservation: as many as may then be missing, which
// the reservation's Undo says.
func (b *bucket) Charge(r *engine.Reservation, n, now int64) (forgiven int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return n - b.tokens.Charge(b.refunds, now, n, r.Undo)
}

// GiveBack returns the tokens of a call that is refused by a later rule or gives up.
func (b *bucket) GiveBack(r *engine.Reservation, now int64) {
	if b.refunds != nil {
		b.Refund(r, r.Units, now)
		return
	}
	b.mu.Lock()
	b.tokens.GiveBack(meter.Taken{At: r.Undo, No: r.Token}, r.Units)
	b.mu.Unlock()
}

// retryAfter returns the time until n more units fit.
func (b *bucket) retryAfter(now, n, size int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.RetryAfter(now, n, size)
}

func (b *bucket) left(now, size int64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Left(now, size)
}

func (b *bucket) full(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Full(now)
}

func (b *bucket) setUnit(now int64, cost meter.Moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refunds != nil {
		b.tokens.SetUnitFor(b.refunds, now, cost)
		return
	}
	b.tokens.SetUnit(now, cost)
}

func (b *bucket) follow(last meter.Moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refunds != nil {
		b.tokens.FollowFor(b.refunds, last)
		return
	}
	b.tokens.Follow(last)
}

func (b *bucket) last() meter.Moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Last()
}
