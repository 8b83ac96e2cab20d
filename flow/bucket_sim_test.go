//go:build sim

package flow

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

const simUnit = int64(16 * time.Millisecond)

// bucketLog records the history of a bucket, in the order of the decisions.
type bucketLog struct {
	events []bucketEvent
	latest int64 // time of the latest call that took
}

// bucketEvent is a call that took, or a change of the cost of a unit.
type bucketEvent struct {
	call *byte // nil for a change of the cost
	at   int64
	n    int64 // units, or nanoseconds
}

// left returns the tokens in a bucket of the given size at a time, in nanoseconds' worth, and the
// cost of a unit at that time.
func (l *bucketLog) left(at, size int64) (left, unit int64) {
	unit = simUnit
	missing, last := int64(0), at
	for i, e := range l.events {
		if i > 0 {
			missing = max(0, missing-(e.at-last))
		}
		if last = e.at; e.call == nil {
			missing, unit = missing*e.n/unit, e.n
		} else {
			missing += e.n * unit
		}
	}
	return size*unit - max(0, missing-(at-last)), unit
}

func (l *bucketLog) remove(call *byte) {
	for i, e := range l.events {
		if e.call == call {
			l.events = append(l.events[:i], l.events[i+1:]...)
			return
		}
	}
}

// bounded checks every interval from one call that ran to another, at the lowest cost of a unit.
func (l *bucketLog) bounded(s *schedules.Schedule, size, least int64) {
	for i, first := range l.events {
		units := int64(0)
		for _, last := range l.events[i:] {
			if last.call == nil || first.call == nil {
				continue
			}
			if units += last.n; (units-size)*least > last.at-first.at {
				s.Failf("%d units in %v, and the bucket holds %d", units, time.Duration(last.at-first.at), size)
			}
		}
	}
}

// Up to 64 callers take batches of several sizes from a bucket, at one instant or one after the
// other, some with an older reading of the clock. Some return tokens at once or later, and the rate
// changes. In no real interval are more tokens taken than a full bucket plus the tokens refilled in
// that interval. Compared with a plain count of tokens, no call is refused that the bucket has room
// for, and none passes that it has no room for.
// known bug 136, 137
func TestSimTokenBucket(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		clock := s.Clock()
		const start = int64(1e18)
		clock.Set(start)
		b := &bucket{tokens: meter.MakeTokenBucket()}
		b.setUnit(start, meter.MomentOf(simUnit, 0))
		size, least := 1+s.Rand.Int64N(5), simUnit
		l := new(bucketLog)
		exact := true // no call gave up after a later one arrived
		callers := 3 + s.Rand.IntN(4)
		if s.Rand.IntN(32) == 0 {
			callers = 64
		}
		pause := func(d int64) {
			if d > 0 {
				_ = clock.Sleep(context.Background(), time.Duration(d))
			}
		}
		for range callers {
			comes, n := s.Rand.Int64N(8)*simUnit/2, 1+s.Rand.Int64N(min(size, 2))
			late, tries := s.Rand.Int64N(3)/2*simUnit, 1+s.Rand.IntN(3)
			leaves := []int64{-1, -1, 0, simUnit / 2, 3 * simUnit}[s.Rand.IntN(5)]
			s.Go(func() {
				pause(comes)
				for range tries {
					now := clock.Now() - late
					token, ok := b.take(now, n, size)
					at := max(now, l.latest) // no other goroutine runs between here and the lock
					left, unit := l.left(at, size)
					switch fits := left >= n*unit; {
					case ok && !fits:
						s.Failf("%d units pass, and %d ns are left of %d each", n, left, unit)
					case !ok && fits && exact:
						s.Failf("%d units are refused, and %d ns are left of %d each", n, left, unit)
					}
					if !ok {
						pause(max(0, int64(b.retryAfter(clock.Now(), 1, size))))
						continue
					}
					l.latest = at
					call := new(byte)
					l.events = append(l.events, bucketEvent{call, at, n})
					if leaves < 0 {
						continue
					}
					pause(leaves)
					(&someAccess).Load()
					b.GiveBack(&engine.Reservation{Units: n, Token: token.No, Undo: token.At}, 0)
					exact = exact && token.At == l.latest
					l.remove(call)
				}
			})
		}
		if s.Rand.IntN(3) == 0 {
			next, at := []int64{simUnit / 2, 2 * simUnit}[s.Rand.IntN(2)], s.Rand.Int64N(6)*simUnit
			least = min(least, next)
			s.Named("reload", func() {
				pause(at)
				now := clock.Now()
				b.setUnit(now, meter.MomentOf(next, 0))
				l.latest = max(l.latest, now)
				l.events = append(l.events, bucketEvent{nil, l.latest, next})
			})
		}
		s.Check(func() { l.bounded(s, size, least) })
	})
}

// someAccess is a point at which the schedule may switch to another goroutine.
var someAccess shared.Int64

// Three callers share a bucket with two units, and one of them gives up: exactly the allowed number
// is admitted, in every interleaving.
// known bug 136
func TestSimTokenBucketEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		b := &bucket{tokens: meter.MakeTokenBucket()}
		b.setUnit(0, meter.MomentOf(simUnit, 0))
		passed := 0
		for i := range 3 {
			s.Go(func() {
				token, ok := b.take(0, 1, 2)
				switch {
				case ok && i == 0:
					b.GiveBack(&engine.Reservation{Units: 1, Token: token.No, Undo: token.At}, 0)
				case ok:
					passed++
				}
			})
		}
		s.Check(func() {
			if passed < 1 || b.left(0, 2) != float64(2-passed) {
				s.Failf("%d pass, %v are left", passed, b.left(0, 2))
			}
		})
	})
}
