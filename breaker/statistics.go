package breaker

import (
	"math"

	"github.com/penstock-go/penstock/stat"
)

// tally counts completed calls, and those of them that failed or were slow.
type tally struct{ calls, bad int64 }

// statistics holds the tallies of the last interval, and their sum; or, without a ring, the
// failures since the last success. The owner guards it with a lock.
type statistics struct {
	ring  *stat.LeapArray[tally] // nil for a row of failures
	sum   tally
	start int64 // start of the newest bucket in sum

	newest *stat.Bucket[tally] // the bucket at start
	until  int64               // end of newest; earlier calls are counted in it
}

func newStatistics(r *Rule) statistics {
	if r.Strategy == ConsecutiveErrors {
		return statistics{until: math.MinInt64}
	}
	ring, err := stat.NewLeapArray[tally](r.Interval, r.Buckets)
	if err != nil {
		panic(err) // rules are validated when loaded
	}
	return statistics{ring: ring, start: math.MinInt64, until: math.MinInt64}
}

// add counts a completed call, and returns the sum over the interval.
func (s *statistics) add(now int64, bad bool) tally {
	if s.ring == nil {
		return s.addToRow(bad)
	}
	b := s.newest
	if now >= s.until {
		b = s.turn(now)
	}
	b.Value.calls++
	s.sum.calls++
	if bad {
		b.Value.bad++
		s.sum.bad++
	}
	return s.sum
}

// addToRow is like add, but counts consecutive failures; a success resets them.
func (s *statistics) addToRow(bad bool) tally {
	s.until = math.MaxInt64
	if !bad {
		s.sum = tally{}
		return s.sum
	}
	s.sum.calls++
	s.sum.bad++
	return s.sum
}

// addGood counts successful calls in the newest bucket.
func (s *statistics) addGood(n int64) {
	switch {
	case n == 0:
	case s.ring == nil:
		s.sum = tally{}
	default:
		s.newest.Value.calls += n
		s.sum.calls += n
	}
}

// turn advances to the current bucket.
func (s *statistics) turn(now int64) *stat.Bucket[tally] {
	b := s.ring.Current(now)
	if b.Start != s.start { // other buckets may have expired with it
		s.start, s.sum = b.Start, s.at(now)
	}
	s.newest, s.until = b, b.Start+int64(s.ring.Width())
	return b
}

// at returns the sum over the interval that ends at now.
func (s *statistics) at(now int64) (sum tally) {
	if s.ring == nil {
		return s.sum
	}
	for b := range s.ring.All(now) {
		sum.calls += b.Value.calls
		sum.bad += b.Value.bad
	}
	return sum
}

func (s *statistics) reset() {
	if s.ring != nil {
		s.ring.Reset()
	}
	s.sum, s.start, s.until = tally{}, math.MinInt64, math.MinInt64
}

// reshaped returns the same tallies in buckets of another shape. A tally that covers several
// buckets goes to the newest.
func (s *statistics) reshaped(r *Rule, now int64) statistics {
	next := newStatistics(r)
	for b := range s.ring.All(now) {
		if to, ok := next.ring.Open(min(now, b.Start+int64(s.ring.Width())-1)); ok {
			to.Value.calls += b.Value.calls
			to.Value.bad += b.Value.bad
		}
	}
	return next
}
