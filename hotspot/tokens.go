package hotspot

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/meter"
)

// A value's token bucket is full at first, or a copy of the rest's if the rest may have given the
// value units. It fills at the rate of the latest rule, even for calls decided by an older one,
// which use only the size from their own rule. Invariant, under the lock of the shard: if the latest
// rule has token buckets, a unit in any of them costs as much as that rule sets for its value.

// tokenBucketLocked returns the token bucket of the cell, creating it if there is none.
func (x *cell) tokenBucketLocked(now int64, q *quota) *meter.TokenBucket {
	if x.tokens == nil {
		b := x.shard.newTokensLocked(&x.value, now, q)
		x.tokens = &b
		if x.shard.rule.rule.Unit != "" {
			x.refunds = new(meter.Refunds)
		}
	}
	return x.tokens
}

// newTokensLocked returns the token bucket for a value that has none.
func (s *shard) newTokensLocked(v *argument.Value, now int64, q *quota) meter.TokenBucket {
	b := meter.MakeTokenBucket()
	if s.rest.tokens != nil && !q.private {
		b = *s.rest.tokens
	}
	unit := s.rule.quotaOf(*v, q.plan).unit
	if unit == (meter.Moment{}) { // no bucket: nothing passes, or the rule has another behavior
		unit = q.unit
	}
	if unit != (meter.Moment{}) {
		b.SetUnit(now, unit)
	}
	return b
}

// tokensOfLocked returns a cell's token bucket or, if x is nil or has none, the bucket that its
// value would get.
func (c *controller) tokensOfLocked(s *shard, x *cell, v *argument.Value, now int64, q *quota) meter.TokenBucket {
	if x != nil && x.tokens != nil {
		b := *x.tokens
		if unit := s.rule.quotaOf(*v, q.plan).unit; c.moves && unit != (meter.Moment{}) {
			b.SetUnit(now, unit) // a call that only looks may have another plan than the value
		}
		return b
	}
	return s.newTokensLocked(v, now, q)
}

// takeTokensLocked takes n units of the cell's token bucket.
func (x *cell) takeTokensLocked(now, n int64, q *quota) (held engine.Reservation, ok bool) {
	if q.none {
		return held, false
	}
	taken, ok := x.tokenBucketLocked(now, q).Take(now, n, q.size)
	return engine.Reservation{Holder: (*tokenUnits)(x), Units: n, Token: taken.No, Undo: taken.At}, ok
}

// takeTokenLocked completes takePlain after the cell is found. It releases the lock.
func (c *controller) takeTokenLocked(inv *engine.Invocation, x *cell, now, n int64, q *quota) (block *core.BlockError) {
	s := x.shard
	if held, ok := x.takeTokensLocked(now, n, q); ok {
		x.passed++
		s.mu.Unlock()
		inv.Reserve(held)
		return nil
	}
	x.refused++
	block = c.refuseLocked(x, n, q)
	s.mu.Unlock()
	return block
}

// tokenUnits are units that a call took from a cell's token bucket.
type tokenUnits cell

// GiveBack returns the units, minus the units refilled since they were taken.
func (u *tokenUnits) GiveBack(r *engine.Reservation, _ int64) {
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	u.tokens.GiveBack(meter.Taken{At: r.Undo, No: r.Token}, r.Units)
}

// follow hands the values over to c, which continues old. It is called right before the first call
// that c decides.
func (vs *values) follow(c, old *controller, now int64) {
	if old.rule.Behavior == TokenBucket {
		for v, q := range c.exceptions { // the starred ones go with the rest, which is as slow as the slowest
			vs.keepTokens(v, now, q)
		}
	}
	for i := range vs.shards {
		s := &vs.shards[i]
		s.lock()
		s.cool(nil)
		if s.rule = c; !c.rule.locksOut() {
			s.locks = nil
		}
		s.cells.all(func(x *cell) { c.takeOverLocked(x, old, now) })
		c.takeOverLocked(&s.rest, old, now) // last, as cells that get a bucket above copy the old one
		s.mu.Unlock()
	}
}

// keepTokens gives a value that the rule has come to name a cell, if it has none but may have taken
// tokens: those of the rest will be refilled at another rate than the value's.
func (vs *values) keepTokens(v argument.Value, now int64, q *quota) {
	hash := v.Hash()
	s := vs.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest.tokens != nil && !q.private && s.cells.find(&v, hash) == nil {
		x := s.add(v, hash, now, q)
		x.named = true
		x.tokenBucketLocked(now, q)
	}
}

// fillAsLocked makes the cell's tokens fill at the rate of a limit, unless that is 0.
func (x *cell) fillAsLocked(q *quota, now int64) {
	if q.unit != (meter.Moment{}) {
		x.setUnitLocked(now, q.unit)
	}
}

func (x *cell) setUnitLocked(now int64, unit meter.Moment) {
	if x.refunds != nil {
		x.tokens.SetUnitFor(x.refunds, now, unit)
		return
	}
	x.tokens.SetUnit(now, unit)
}

// followLocked makes the cell's bucket b continue from the latest turn of its queue.
func (x *cell) followLocked(b *meter.TokenBucket, last meter.Moment) {
	if x.refunds != nil {
		b.FollowFor(x.refunds, last)
		return
	}
	b.Follow(last)
}

// takeOverLocked makes a cell continue from old: its token bucket is short of as many units as
// before. When a queue becomes a bucket, assigned turns count as units taken: the bucket is full
// when the next turn would have been due. When a bucket becomes a queue, the first turn is one
// spacing after the last unit that passed the bucket.
func (c *controller) takeOverLocked(x *cell, old *controller, now int64) {
	if x.plan != nil && !x.plan.isAnswer() {
		x.plan = c.plans[x.plan.name]
	}
	c.keepAnswerLocked(x, old)
	if x.extras != nil && !c.notifier.Keeps(old.notifier) {
		x.extras.noticed = family.Noticed{}
	}
	if x.extras != nil && !c.rule.locksOut() {
		x.extras.lockout = lockout{}
	}
	q := c.quotaOf(x.value, x.plan)
	c.goOnLocked(x, now)
	switch {
	case q.unit != (meter.Moment{}):
		if x.tokens != nil {
			x.setUnitLocked(now, q.unit)
		}
		if last := x.paid(); old.rule.Behavior == Throttle && last != meter.LongAgo() {
			x.followLocked(x.tokenBucketLocked(now, q), last)
		}
	case c.rule.Behavior == Throttle && old.rule.Behavior == TokenBucket && x.tokens != nil:
		x.turnsLocked(now, q).NotBefore(x.tokens.Last())
	case c.rule.Behavior == Throttle && x.queue != nil:
		x.turnsLocked(now, q)
	}
}
