package system

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// times is the mean response time of recently completed calls. Safe for concurrent use.
//
// # Why a call that asks needs no lock
//
// average is written under mu only, as calls complete and as buckets expire, and until (the end of
// the newest bucket) is stored after it. So a caller that loads until, and whose time is before it,
// then loads an average that was right at some instant since it loaded until, and that belongs to
// the bucket of its time or a newer one. Once the newest bucket has ended, the oldest one must
// expire: the next caller that asks does that, under mu.
type times struct {
	average shared.Int64 // rounded up: it is above a whole number of ns only if the mean is
	until   shared.Int64

	mu    shared.Mutex
	width int64   // of a bucket
	head  int64   // number of the newest bucket; it only increases
	ring  []timed // the buckets that count, at index number modulo length
	all   timed   // their sum
}

// timed counts completed calls, and sums their response times.
type timed struct{ calls, spent int64 }

// longAgo is a bucket that has ended by any time.
const longAgo = math.MinInt64 / 2

func newTimes(shape stat.Shape) *times {
	return &times{width: int64(shape.Width()), ring: make([]timed, shape.Buckets), head: longAgo}
}

// add counts a call that completed at now.
func (t *times) add(now, rt int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roll(now)
	t.put(t.head, timed{1, rt})
	t.settle()
}

// mean returns the mean response time at now, or 0 if no call has completed.
func (t *times) mean(now int64) int64 {
	if now < t.until.Load() {
		return t.average.Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roll(now)
	t.settle()
	return t.average.Load()
}

// seedFrom takes over the counts of another times at now. It must be called before t is used.
func (t *times) seedFrom(old *times, now int64) {
	old.mu.Lock()
	defer old.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	old.roll(now) // otherwise its counts would depend on whether a call has asked lately
	old.settle()
	now = max(now, old.head*old.width) // the caller may be late
	t.roll(now)
	for b := old.head - int64(len(old.ring)) + 1; b <= old.head; b++ {
		t.put(t.number(min((b+1)*old.width-1, now)), *old.at(b))
	}
	t.settle()
}

// seed takes over the counts of a node: its second window and, for earlier times, the whole seconds
// of its minute. It must be called before t is used.
func (t *times) seed(c *stat.Counters, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roll(now)
	recent := c.SecondBuckets(now)
	for _, second := range c.History(now) {
		if second.Start+int64(time.Second) <= recent[0].Start { // no call twice
			t.put(t.number(second.Start), timed{second.Value.Timed(), int64(second.Value.RT)})
		}
	}
	for _, bucket := range recent {
		t.put(t.number(bucket.Start), timed{bucket.Value.Timed(), int64(bucket.Value.RT)})
	}
	t.settle()
}

// The methods below need mu.

// settle publishes the changes.
func (t *times) settle() {
	var average int64
	if t.all.calls > 0 {
		average = (t.all.spent + t.all.calls - 1) / t.all.calls
	}
	t.average.Store(average)
	t.until.Store((t.head + 1) * t.width)
}

// roll opens the current bucket, unless a newer one is open: a caller may be late.
func (t *times) roll(now int64) {
	to := t.number(now)
	if to-t.head >= int64(len(t.ring)) {
		clear(t.ring)
		t.all, t.head = timed{}, to
	}
	for t.head < to {
		t.head++
		b := t.at(t.head)
		t.all.calls -= b.calls
		t.all.spent -= b.spent
		*b = timed{}
	}
}

// put counts calls in a bucket, if it still counts.
func (t *times) put(bucket int64, more timed) {
	if bucket <= t.head-int64(len(t.ring)) {
		return
	}
	b := t.at(min(bucket, t.head))
	b.calls += more.calls
	b.spent += more.spent
	t.all.calls += more.calls
	t.all.spent += more.spent
}

func (t *times) at(bucket int64) *timed { return &t.ring[modulo(bucket, int64(len(t.ring)))] }

// number returns the number of a time's bucket, also before 1970.
func (t *times) number(at int64) int64 { return (at - modulo(at, t.width)) / t.width }

func modulo(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
