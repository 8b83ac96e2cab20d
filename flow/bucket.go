package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
)

// bucket is the token bucket of a rule, under a lock of its own. It outlives changes of the rule:
// what was taken stays taken, and comes back at the new rate. A call that is still judged by the
// old rule takes from the same bucket, as much as the old rule allows, so that the new rule knows
// of it. It is safe for concurrent use.
type bucket struct {
	mu     shared.Mutex
	tokens meter.TokenBucket
}

// newBucket returns a full bucket for the rule.
func newBucket(r Rule) *bucket {
	b := &bucket{tokens: meter.MakeTokenBucket()}
	b.tokens.SetUnit(0, r.unitCost())
	return b
}

// size is how many units the bucket of the rule holds.
func (r Rule) size() int64 { return family.BucketSize(r.Burst) }

// unitCost is how long it takes until one more unit is in the bucket of the rule.
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

// GiveBack gives back what was taken by a call that is refused after all, or leaves.
func (b *bucket) GiveBack(r *engine.Reservation, _ int64) {
	b.mu.Lock()
	b.tokens.GiveBack(meter.Taken{At: r.Undo, No: r.Token}, r.Units)
	b.mu.Unlock()
}

// retryAfter is when one more unit fits.
func (b *bucket) retryAfter(now, size int64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.RetryAfter(now, 1, size)
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

// spare is what a rule had before its behavior changed, in case it changes back.
type spare struct {
	queue  *throttle
	bucket *bucket
}

// takeOver is called right before the first call goes by the controller, which continues old unless
// that is nil. From then on the bucket fills at the controller's rate. Where a queue became a
// bucket, the turns that were given are units that were taken: the bucket is full when the turn
// after them would have come. Where a bucket became a queue, its first turn comes one distance
// after the last unit that the bucket let pass. A window says nothing of either: after one, a
// bucket is as it was when the rule last had it, or full.
func (c *controller) takeOver(old *controller, now int64) {
	switch {
	case c.bucket != nil:
		if c.rule.Threshold > 0 {
			c.bucket.setUnit(now, c.rule.unitCost())
		}
		if c.spare.queue != nil && old.bucket == nil {
			c.bucket.follow(c.spare.queue.last())
		}
	case c.spare.bucket != nil && old.queue == nil:
		c.queue.follow(c.spare.bucket.last())
	}
}

func (b *bucket) setUnit(now int64, cost meter.Moment) {
	b.mu.Lock()
	b.tokens.SetUnit(now, cost)
	b.mu.Unlock()
}

func (b *bucket) follow(last meter.Moment) {
	b.mu.Lock()
	b.tokens.Follow(last)
	b.mu.Unlock()
}

func (b *bucket) last() meter.Moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Last()
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

// never is what a rule knows about a call that takes more units than its bucket holds.
type never struct{ *controller }

// RetryAfter is not known: no time helps.
func (never) RetryAfter() (wait time.Duration, known bool) { return 0, false }
