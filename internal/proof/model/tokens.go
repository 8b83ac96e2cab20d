package model

import (
	"math/big"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// bucket is the textbook token bucket: tokens drip in at an even rate, in fractions. It counts the
// missing units.
type bucket struct {
	missing *big.Rat // at the time of the latest drip
	drip    int64
	unit    *big.Int  // the time from one unit to the next, in 2^-32 ns
	taken   []*taking // in order
	latest  int64     // when a call last took, or the rate changed
}

// taking is the units that a call has taken.
type taking struct {
	call     *Call
	at, n    int64
	returned bool
}

// newBucket returns a full bucket.
func newBucket(interval time.Duration, threshold float64) *bucket {
	return &bucket{missing: new(big.Rat), drip: allTime, latest: allTime, unit: unitOf(interval, threshold)}
}

// unitOf returns the time from one unit to the next at a rate of threshold per interval, computed
// in a float64 and rounded up to 2^-32 ns, or 73 years if no unit ever becomes available.
func unitOf(interval time.Duration, threshold float64) *big.Int {
	if threshold == 0 {
		return parts(1 << 61)
	}
	rounded := new(big.Float).SetPrec(53).SetMode(big.ToPositiveInf)
	unit, _ := rounded.Quo(big.NewFloat(float64(interval)), big.NewFloat(threshold)).Rat(nil)
	return up(unit.Mul(unit, new(big.Rat).SetInt(parts(1))))
}

// come adds the tokens that drip in until now.
func (b *bucket) come(now int64) {
	if b.drip != allTime {
		b.missing.Sub(b.missing, b.units(parts(now-b.drip)))
	}
	if b.missing.Sign() < 0 {
		b.missing.SetInt64(0)
	}
	b.drip = now
}

// units returns the number of units that drip in during a time.
func (b *bucket) units(time *big.Int) *big.Rat { return new(big.Rat).SetFrac(time, b.unit) }

func (b *bucket) fits(now, n, size int64) bool {
	b.come(now)
	return new(big.Rat).Add(b.missing, new(big.Rat).SetInt64(n)).Cmp(new(big.Rat).SetInt64(size)) <= 0
}

func (b *bucket) take(c *Call, now, n int64) {
	b.come(now)
	b.missing.Add(b.missing, new(big.Rat).SetInt64(n))
	b.taken = append(b.taken, &taking{call: c, at: now, n: n})
	b.latest = now
}

// giveBack returns a call's units, minus the units dripped in since: afterwards as many are
// missing as were taken after the call, as if all of them were taken with the latest.
func (b *bucket) giveBack(c *Call, now int64) {
	i := slices.IndexFunc(b.taken, func(x *taking) bool { return x.call == c && !x.returned })
	if i < 0 {
		return
	}
	b.come(now)
	x := b.taken[i]
	missing := new(big.Rat).Sub(b.missing, new(big.Rat).SetInt64(x.n))
	if x.at != b.latest {
		after := new(big.Rat)
		for _, later := range b.taken[i+1:] {
			after.Add(after, new(big.Rat).SetInt64(later.n))
		}
		after.Sub(after, b.units(parts(now-b.latest)))
		missing = longer(missing, after)
	}
	if missing.Cmp(b.missing) < 0 {
		b.missing = longer(missing, new(big.Rat))
	}
	if x.returned = true; i == len(b.taken)-1 {
		b.taken = b.taken[:i]
	}
}

func longer(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// setUnit changes the rate: as many units stay missing, up to 2^-32 ns.
func (b *bucket) setUnit(now int64, unit *big.Int) {
	if b.unit.Cmp(unit) == 0 {
		return
	}
	b.come(now)
	b.latest, b.unit = now, unit
	b.missing = b.units(up(new(big.Rat).Mul(b.missing, new(big.Rat).SetInt(unit))))
}

// up rounds a number up.
func up(x *big.Rat) *big.Int {
	n := new(big.Int).Add(x.Num(), x.Denom())
	return n.Quo(n.Sub(n, big.NewInt(1)), x.Denom())
}

// follow continues the bucket from turns: it is full when the turn after the last would come.
func (b *bucket) follow(last *big.Int, now int64) {
	b.come(now)
	full := new(big.Int).Add(last, b.unit)
	b.missing = longer(b.missing, b.units(full.Sub(full, parts(now))))
}

// retryAfter returns the time until one more unit fits: zero if one does.
func (b *bucket) retryAfter(now, size int64) time.Duration {
	b.come(now)
	over := new(big.Rat).Sub(new(big.Rat).Add(b.missing, big.NewRat(1, 1)), new(big.Rat).SetInt64(size))
	if over.Sign() <= 0 {
		return 0
	}
	over.Mul(over, new(big.Rat).SetFrac(b.unit, parts(1))) // ns
	return time.Duration(up(over).Int64())
}

// left returns the number of tokens.
func (b *bucket) left(now, size int64) float64 {
	b.come(now)
	left, _ := new(big.Rat).Sub(new(big.Rat).SetInt64(size), b.missing).Float64()
	return max(0, left)
}

// size returns the units that the bucket of a rule holds.
func (l *limiter) size() int64 { return int64(l.rule.Burst) + 1 }

// takeOver continues the bucket or the queue of a rule from the previous rule's.
func (m *Model) takeOver(l, old *limiter) {
	switch {
	case l.rule.Behavior == flow.TokenBucket:
		if l.rule.Threshold > 0 {
			l.bucket.setUnit(m.now, unitOf(l.rule.Interval, l.rule.Threshold))
		}
		if l.queue != nil && old.rule.Behavior != flow.TokenBucket {
			if last := l.queue.last(); last != nil {
				l.bucket.follow(last, m.now)
			}
		}
	case l.queues() && l.bucket != nil && !old.queues() && l.bucket.latest != allTime:
		l.queue.follow(parts(l.bucket.latest))
	}
}
