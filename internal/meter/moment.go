package meter

import (
	"math"
	"sort"
	"time"
)

// Moment is a point in time, or a length of it, in nanoseconds and 2^-32 of one, so that a rate
// whose cost is not a whole number of nanoseconds doesn't drift.
type Moment struct {
	ns   int64
	frac uint32 // 1/2^32 ns
}

const (
	longAgo = math.MinInt64 / 2
	maxCost = 1 << 61 // 73 years; no call waits for a longer cost
)

// LongAgo returns a moment before every time that a clock can show. Any cost can be added to it
// without overflow.
func LongAgo() Moment { return Moment{ns: longAgo} }

// Cost returns the time of n units at perUnit nanoseconds each. It is never zero: no two calls get
// the same turn.
func Cost(n int64, perUnit float64) Moment {
	c := float64(n) * perUnit
	if !(c < maxCost) {
		return Moment{ns: maxCost}
	}
	whole := math.Floor(c)
	frac := uint32((c - whole) * (1 << 32))
	if whole == 0 {
		frac = max(frac, 1)
	}
	return Moment{ns: int64(whole), frac: frac}
}

// MomentOf returns the moment ns nanoseconds and part·2^-32 nanoseconds after 1970.
func MomentOf(ns int64, part uint32) Moment { return Moment{ns, part} }

// Split is the reverse of [MomentOf].
func (m Moment) Split() (ns int64, part uint32) { return m.ns, m.frac }

func (m Moment) plus(c Moment) Moment {
	frac := uint64(m.frac) + uint64(c.frac)
	return Moment{ns: m.ns + c.ns + int64(frac>>32), frac: uint32(frac)}
}

func (m Moment) minus(c Moment) Moment {
	frac := int64(m.frac) - int64(c.frac)
	return Moment{ns: m.ns - c.ns + frac>>32, frac: uint32(frac)}
}

// float returns the moment in nanoseconds, rounded.
func (m Moment) float() float64 { return float64(m.ns) + float64(m.frac)/(1<<32) }

// Later returns the later of the two moments.
func (m Moment) Later(other Moment) Moment {
	if other.ns > m.ns || other.ns == m.ns && other.frac > m.frac {
		return other
	}
	return m
}

// orNow returns m, or now if that is later. A moment at now keeps its fraction, so that callers
// exactly on time get no more than the rate.
func (m Moment) orNow(now int64) Moment {
	if m.ns >= now {
		return m
	}
	return Moment{ns: now}
}

// Wait returns the wait of a call at now for a turn that follows m by its cost. The turn may have passed
// by the time of a burst, in ns.
func (m Moment) Wait(now, burst int64, cost Moment) time.Duration {
	return time.Duration(max(0, m.plus(cost).orNow(now-burst).ns-now))
}

// TurnsWithin returns the number of turns after m, each one cost after the previous, that are at
// most maxWait after now. The first may have passed by the time of a burst. The result is at most 2^30.
func (m Moment) TurnsWithin(now, burst int64, cost Moment, maxWait time.Duration) int64 {
	first := m.plus(cost).orNow(now - burst)
	return int64(sort.Search(1<<30, func(n int) bool {
		return first.plus(cost.Times(int64(n))).ns-now > int64(maxWait)
	}))
}
