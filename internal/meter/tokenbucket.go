package meter

import (
	"math"
	"math/big"
	"math/bits"
	"sort"
	"time"
)

// TokenBucket admits units at a rate, and bursts up to its size beyond that rate. It never makes a
// call wait: a call that doesn't fit is rejected. It is the generic cell rate algorithm of ITU-T
// I.371 and of the ATM Forum's Traffic Management 4.0, as virtual scheduling (section 4.4.2 there):
// it keeps neither tokens nor the time of their last refill, only the theoretical arrival time,
// tat: the time at which the bucket will be full. tat minus the current time is the cost of the
// missing units. So nothing is ever refilled or rounded, even if the clock leaps, and no error
// accumulates.
//
// A call of n units passes if the bucket is then missing no more than its size:
//
//	max(tat, now) + n·unit - now <= size
//
// So the units of the calls that pass in any real interval, both ends included, take at most size
// plus the length of the interval. In an interval that is open at one end, at most as many units
// pass as the rate yields in it, rounded up, plus the bucket's size minus one.
//
// For a caller that was delayed after it read the clock, the latest time at which any call took
// units counts; otherwise it would be denied units that have been refilled since.
//
// It is not safe for concurrent use: its owner must lock it.
type TokenBucket struct {
	tat   Moment
	unit  Moment // cost of a unit; zero until [TokenBucket.SetUnit]
	seen  int64  // latest time at which a call took units
	taken int64  // units ever taken, minus the latest if they were given back
}

// MakeTokenBucket returns a full bucket without a cost of units.
func MakeTokenBucket() TokenBucket { return TokenBucket{tat: LongAgo(), seen: longAgo} }

// UnitCost returns the time from one unit to the next at perInterval units per interval, rounded
// up, so that the rate is never exceeded. It falls short by less than one part in 10^15 if a unit
// costs a millisecond or more, and otherwise by less than 2^-32 of a nanosecond per unit.
func UnitCost(interval time.Duration, perInterval float64) Moment {
	cost := float64(interval) / perInterval
	if math.FMA(cost, perInterval, -float64(interval)) < 0 { // the quotient was rounded down
		cost = math.Nextafter(cost, math.Inf(1))
	}
	if !(cost < maxCost) {
		return Moment{ns: maxCost}
	}
	whole := math.Floor(cost)
	part := math.Ceil((cost - whole) * (1 << 32)) // the product is exact
	return Moment{ns: int64(whole)}.plus(Moment{ns: int64(part) >> 32, frac: uint32(int64(part))})
}

// Times returns the cost of n units, from 0 to maxTimes, at m each. It is exact up to 73 years; longer
// times count as 73 years.
func (m Moment) Times(n int64) Moment {
	part := uint64(m.frac) * uint64(n)
	high, low := bits.Mul64(uint64(m.ns), uint64(n))
	low, carry := bits.Add64(low, part>>32, 0)
	if high+carry != 0 || low >= maxCost {
		return Moment{ns: maxCost}
	}
	return Moment{ns: int64(low), frac: uint32(part)}
}

// maxTimes is the maximum number of units for which the fraction fits into 64 bits.
const maxTimes = 1 << 32

// TimesMany is Times for any number of units.
func (m Moment) TimesMany(n int64) Moment {
	if n <= maxTimes {
		return m.Times(n)
	}
	high := m.Times(n >> 32)
	if high.ns >= maxCost>>32 {
		return Moment{ns: maxCost}
	}
	high = Moment{ns: high.ns<<32 | int64(high.frac)}
	if sum := high.plus(m.Times(n & (1<<32 - 1))); sum.ns < maxCost {
		return sum
	}
	return Moment{ns: maxCost}
}

// Endless reports whether a cost is longer than any wait, so that [Moment.Times] and [UnitCost] are
// not exact.
func (m Moment) Endless() bool { return m.ns >= maxCost }

// before reports whether m is earlier than other.
func (m Moment) before(other Moment) bool {
	return m.ns < other.ns || m.ns == other.ns && m.frac < other.frac
}

// end returns the tat after a call at now that takes n more units, and reports whether they fit
// into a bucket that holds size units.
func (b *TokenBucket) end(now, n, size int64) (tat Moment, ok bool) {
	if n > size {
		return b.tat, false
	}
	at := max(now, b.seen)
	if size > maxTimes {
		tat = b.tat.orNow(at).plus(b.unit.TimesMany(n))
		return tat, !Moment{ns: at}.plus(b.unit.TimesMany(size)).before(tat)
	}
	tat = b.tat.orNow(at).plus(b.unit.Times(n))
	return tat, !Moment{ns: at}.plus(b.unit.Times(size)).before(tat)
}

// Fits reports whether n units fit at now into a bucket that holds size.
func (b *TokenBucket) Fits(now, n, size int64) bool {
	_, ok := b.end(now, n, size)
	return ok
}

// Taken records a call that took units, for [TokenBucket.GiveBack].
type Taken struct {
	At int64 // time of the decision
	No int64 // units ever taken, up to and including this call's
}

// Take takes n units if they fit at now.
func (b *TokenBucket) Take(now, n, size int64) (taken Taken, ok bool) {
	tat, ok := b.end(now, n, size)
	if !ok {
		return Taken{}, false
	}
	b.tat, b.seen = tat, max(now, b.seen)
	b.taken += n
	return Taken{b.seen, b.taken}, true
}

// GiveBack gives back n units taken by a call that doesn't run, unless they have already been
// refilled.
//
// Moving tat back by their cost would be too much if the bucket has been full since, or nearly so.
// Say it holds one unit, which is refilled in 10 ms. A call takes it at 0, another takes one at 10,
// and the first gives its unit back at 11: tat is then 20, as if the first call had never existed.
// With a tat of 10, a third call would pass a millisecond after the second.
//
// The condition is that tat is never earlier than it would be without the call. Without the call,
// tat is the maximum of t + (the cost of the units taken at t or later, and not given back), over
// the times t of all calls that took units. For each t up to the call's own time, the call's whole
// cost may be subtracted. The same holds for other calls at the same instant: before any of them,
// tat was at least that instant, or counts as that. If another call has taken units later, t is at
// most seen, the latest time, and the units taken at t or later are at most the units taken after
// the call. Units given back are subtracted from that number only if none were taken after them, so
// the sum may be too high, but never too low. So a call gets back less than it took only if the
// bucket would be nearly full, and will be full soon anyway.
func (b *TokenBucket) GiveBack(taken Taken, n int64) {
	tat := b.tat.minus(b.unit.Times(n))
	if taken.At != b.seen {
		tat = tat.Later(Moment{ns: b.seen}.plus(b.unit.Times(b.taken - taken.No)))
	}
	if tat.before(b.tat) {
		b.tat = tat
	}
	if taken.No == b.taken {
		b.taken -= n
	}
}

// RetryAfter returns the time from now until n units fit into a bucket that holds size, if no other
// call takes units first. It is rounded up to the nanosecond. n is at most size.
func (b *TokenBucket) RetryAfter(now, n, size int64) time.Duration {
	at := b.tat.plus(b.unit.TimesMany(n)).minus(b.unit.TimesMany(size))
	if at.frac > 0 {
		at.ns++
	}
	if at.ns <= b.seen { // seen counts as the time of the decision, or a later time
		return 0
	}
	return time.Duration(max(0, at.ns-now))
}

// Left returns the number of units in a bucket that holds size at now, including the fraction of
// the next unit.
func (b *TokenBucket) Left(now, size int64) float64 {
	missing := b.tat.orNow(now).minus(Moment{ns: now})
	if missing == (Moment{}) {
		return float64(size)
	}
	return max(0, float64(size)-missing.nanoseconds()/b.unit.nanoseconds())
}

// Whole returns the maximum number of units that fit at now into a bucket that holds size.
func (b *TokenBucket) Whole(now, size int64) int64 {
	return int64(sort.Search(int(size), func(n int) bool { return !b.Fits(now, int64(n)+1, size) }))
}

func (m Moment) nanoseconds() float64 { return float64(m.ns) + float64(m.frac)/(1<<32) }

// Full reports whether nothing is missing at now.
func (b *TokenBucket) Full(now int64) bool { return b.tat.orNow(now) == Moment{ns: now} }

// SetUnit changes the cost of a unit at now; cost must be above zero. The number of missing units
// stays the same, and they are refilled at the new rate.
func (b *TokenBucket) SetUnit(now int64, cost Moment) {
	before := b.unit
	b.unit = cost
	if before == cost || before == (Moment{}) {
		return
	}
	now = max(now, b.seen)
	b.seen = now
	b.tat = Moment{ns: now}.plus(b.tat.orNow(now).minus(Moment{ns: now}).scaled(cost, before))
}

// scaled returns the time of units that took m at the cost before, at another cost, rounded up.
func (m Moment) scaled(cost, before Moment) Moment {
	n := m.big()
	n.Mul(n, cost.big())
	n.Add(n, before.big()).Sub(n, big.NewInt(1))
	return momentOf(n.Quo(n, before.big()))
}

// Follow makes the bucket continue from the time at which another rule let the last unit pass, or
// will let it pass.
func (b *TokenBucket) Follow(last Moment) { b.tat = b.tat.Later(last.plus(b.unit)) }

// GoOnFrom makes the bucket also replace old, which is full at now and is then dropped: for no
// later call does the bucket use a time earlier than now, or than old would have used.
func (b *TokenBucket) GoOnFrom(old *TokenBucket, now int64) { b.seen = max(b.seen, old.seen, now) }

// Last returns a time not earlier than that of the last unit that passed.
func (b *TokenBucket) Last() Moment { return Moment{ns: b.seen} }

// big returns a length of time in 2^-32 of a nanosecond.
func (m Moment) big() *big.Int {
	n := big.NewInt(m.ns)
	return n.Lsh(n, 32).Add(n, big.NewInt(int64(m.frac)))
}

// momentOf is the reverse of big.
func momentOf(n *big.Int) Moment {
	if n.BitLen() > 61+32 {
		return Moment{ns: maxCost}
	}
	whole := new(big.Int).Rsh(n, 32)
	part := new(big.Int).Sub(n, new(big.Int).Lsh(whole, 32))
	return Moment{ns: whole.Int64(), frac: uint32(part.Uint64())}
}
