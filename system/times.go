package system

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// times is the mean response time of the calls that completed lately. It is safe for
// concurrent use.
//
// # Why a call that asks needs no lock
//
// average is written under mu only, as calls complete and as buckets are forgotten,
// and until (when the newest bucket ends) is stored after it. So a caller that loads
// until and finds its time before it loads an average that was right at some instant
// since it loaded until, and is of the bucket of its time or of a newer one. Once the bucket
// is over somebody has to forget the oldest one: whoever asks does that, under mu.
type times struct {
	average shared.Int64 // rounded up: it is above a whole number of ns only if the mean is
	until   shared.Int64

	mu    shared.Mutex
	width int64        // of a bucket
	spent *stat.Window // response times
	calls *stat.Window
}

func newTimes(shape stat.Shape) *times {
	t := &times{width: int64(shape.Width())}
	t.spent, t.calls = newWindow(shape), newWindow(shape)
	return t
}

func newWindow(shape stat.Shape) *stat.Window {
	w, err := stat.NewWindow(shape)
	if err != nil {
		panic(err) // rules are validated before they get here
	}
	return w
}

// add counts a call that completed at now.
func (t *times) add(now, rt int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent.Add(now, rt)
	t.calls.Add(now, 1)
	t.settle(now)
}

// mean is the mean response time at now, 0 if no call has completed.
func (t *times) mean(now int64) int64 {
	if now < t.until.Load() {
		return t.average.Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	return t.average.Load()
}

// settle needs mu.
func (t *times) settle(now int64) {
	now = max(now, t.until.Load()-1) // a caller may be late
	spent, calls := t.spent.Sum(now), t.calls.Sum(now)
	var average int64
	if calls > 0 {
		average = (spent + calls - 1) / calls
	}
	t.average.Store(average)
	t.until.Store(now - floorMod(now, t.width) + t.width)
}

func floorMod(t, width int64) int64 {
	m := t % width
	if m < 0 {
		m += width
	}
	return m
}

// seedFrom takes over what another one has counted.
func (t *times) seedFrom(old *times, now int64) {
	old.mu.Lock()
	defer old.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent.SeedFrom(old.spent, now)
	t.calls.SeedFrom(old.calls, now)
	t.settle(now)
}

// seed takes over what a node has counted: its second window, and for what lies
// further back the whole seconds of its minute.
func (t *times) seed(c *stat.Counters, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	recent := c.SecondBuckets(now)
	for _, second := range c.History(now) {
		if second.Start+int64(time.Second) <= recent[0].Start { // no call twice
			t.count(now, second.Start, &second.Value)
		}
	}
	for _, bucket := range recent {
		t.count(now, bucket.Start, &bucket.Value)
	}
	t.settle(now)
}

func (t *times) count(now, at int64, c *stat.Counts) {
	t.spent.Seed(now, at, int64(c.RT))
	t.calls.Seed(now, at, c.Exited)
}
