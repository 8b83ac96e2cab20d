package upstream

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// throttle refuses the calls of a resource at random; see the package's documentation. The zero value
// isn't ready. mu guards the fields below it. It is safe for concurrent use.
type throttle struct {
	mu    shared.Mutex
	ring  *stat.LeapArray[tally]
	sum   tally // of the ring, as of its newest bucket
	start int64 // of that bucket
	last  int64 // latest second in which a call passed as the first; see first
	rand  *rand.Rand
}

// tally counts calls; see the package's documentation.
type tally struct{ requests, accepts int64 }

const (
	throttleBuckets = 20
	mostRefused     = 0.99
	second          = int64(time.Second)
)

// newThrottle returns a throttle without calls. Equal seeds draw equal numbers.
func newThrottle(interval time.Duration, seed uint64) *throttle {
	return &throttle{ring: newRing(interval), start: math.MinInt64, last: math.MinInt64, rand: rand.New(rand.NewPCG(seed, 0))}
}

func newRing(interval time.Duration) *stat.LeapArray[tally] {
	ring, err := stat.NewLeapArray[tally](interval, throttleBuckets)
	if err != nil {
		panic(err) // rules are validated when loaded
	}
	return ring
}

// probability returns the probability with which a call is refused, unless it is the first in its
// second: 1 if the server seems to be dead.
func (t tally) probability(k float64) float64 {
	p := (float64(t.requests) - k*float64(t.accepts)) / float64(t.requests+1)
	switch {
	case p < mostRefused:
		return max(0, p)
	case t.accepts == 0:
		return 1
	}
	return mostRefused
}

// admit decides on a call, in one step with counting it if it is refused. For the first call in a
// second, which would otherwise have been at risk, first is that second: give it back if the call
// doesn't run.
func (t *throttle) admit(now int64, k float64) (first int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(now)
	p := t.sum.probability(k)
	if p == 0 {
		return math.MinInt64, true
	}
	if s := floor(now); s > t.last {
		t.last = s
		return s, true
	}
	if p == 1 || t.rand.Float64() < p {
		t.countLocked(tally{requests: 1})
		return 0, false
	}
	return math.MinInt64, true
}

// giveBack lets another call be the first in a second.
func (t *throttle) giveBack(first int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == first {
		t.last = first - second
	}
}

// complete counts a call that has ended.
func (t *throttle) complete(now int64, accepted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(now)
	one := tally{requests: 1}
	if accepted {
		one.accepts = 1
	}
	t.countLocked(one)
}

// turnLocked brings sum up to date.
func (t *throttle) turnLocked(now int64) {
	if b := t.ring.Current(now); b.Start != t.start {
		t.start, t.sum = b.Start, t.atLocked(now)
	}
}

func (t *throttle) countLocked(n tally) {
	b, _ := t.ring.Open(t.start)
	b.Value.requests += n.requests
	b.Value.accepts += n.accepts
	t.sum.requests += n.requests
	t.sum.accepts += n.accepts
}

// atLocked returns the sum over the interval that ends at now.
func (t *throttle) atLocked(now int64) (sum tally) {
	for b := range t.ring.All(now) {
		sum.requests += b.Value.requests
		sum.accepts += b.Value.accepts
	}
	return sum
}

// look returns the counts, and whether a call would be the first in its second.
func (t *throttle) look(now int64) (sum tally, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.atLocked(now), floor(now) > t.last
}

// setInterval keeps the counts that are in the new interval as well.
func (t *throttle) setInterval(interval time.Duration, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := newRing(interval)
	if next.Width() == t.ring.Width() {
		return
	}
	for b := range t.ring.All(now) {
		if to, ok := next.Open(min(now, b.Start+int64(t.ring.Width())-1)); ok {
			to.Value.requests += b.Value.requests
			to.Value.accepts += b.Value.accepts
		}
	}
	t.ring, t.start = next, math.MinInt64
}

// floor returns the beginning of the second.
func floor(now int64) int64 { return now - ((now%second)+second)%second }
