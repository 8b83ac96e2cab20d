package stat

import (
	"iter"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Counters record the traffic of one node for display: a second window striped over lanes, the last
// minute by the second, and totals since the start. They are safe for concurrent use.
//
// Calls write to the newest bucket of their lane without waiting. The caller chooses the lane, any
// number below [Layout.Lanes]; concurrent callers should use different lanes.
//
// # No count is lost or doubled
//
// Calls don't write to the minute and the totals. When a lane bucket has expired, its counts are
// moved there under mu: each counter is swapped to zero and added to the second of the bucket's
// start and to the totals; the new start is stored last. A late adder adds to a bucket that has
// been recycled in the meantime, so its count appears in a newer bucket but isn't lost. A call
// takes mu only with TryLock; if that fails, another goroutine holds it, and the call adds to its
// lane's newest bucket, provided that the second window still covers that bucket.
//
// Readers take mu and roll every expired bucket first. Only holders of mu move counts, so for a
// reader each counter's total plus its live counts in the lanes is exact and never decreases.
// Different counters are not read at one instant.
//
// # Counters that include others
//
// If every call counted on one node also counts on another, the call is counted once, on the first,
// and the second includes it (see [Counters.Include]): readers add the two up. Readers lock both,
// the including Counters first.
type Counters struct {
	layout *Layout
	lanes  []shared.Pointer[lane]  // a power of two; each is made on first use
	few    [4]shared.Pointer[lane] // the lanes if there are at most four, without an indirection

	mu       shared.Mutex
	totals   Counts             // moved out of the lanes
	minute   minute             // the same counts, by the second
	moved    int64              // end of the newest bucket that was moved
	passed   int64              // end of the newest bucket that was moved out of a lane
	relieved *LeapArray[Counts] // counts moved early or never in a lane, still in the second window
	times    *histogram         // of timed calls, or nil
	part     *Counters          // included, or nil
}

// Init prepares a zero Counters for use. It is not safe for concurrent use.
func (c *Counters) Init(layout *Layout) {
	c.layout = layout
	if c.lanes = c.few[:min(layout.lanes, len(c.few))]; layout.lanes > len(c.few) {
		c.lanes = make([]shared.Pointer[lane], layout.lanes)
	}
}

// Include makes c also count everything that part will count. It returns false and changes nothing
// if c already includes other Counters: one part is enough for nearly all nodes, and readers then
// lock at most two. part must be new, without a part of its own and not yet used by any call, so
// that none of its calls was counted on c.
func (c *Counters) Include(part *Counters) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.part != nil {
		return false
	}
	c.part = part
	return true
}

// AddPass counts a call of n units as admitted.
func (c *Counters) AddPass(lane uint32, now, n int64) {
	b := c.newest(lane)
	if !b.reaches(now, c.layout) {
		b = c.open(lane, now)
	}
	if b.pass.Add(pack(n))&halfFull != 0 {
		c.relieve(b)
	}
}

// AddOccupied counts n units, which were already counted as admitted, as borrowed too. Their call
// has waited for its bucket, so it can also wait for the lock, and lanes need no word for borrowed
// units.
func (c *Counters) AddOccupied(lane uint32, now, n int64) {
	start := c.bucket(lane, now).start.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(start, &Counts{Occupied: n})
}

// AddBlock counts n units as rejected.
func (c *Counters) AddBlock(lane uint32, now, n int64) {
	b := c.newest(lane)
	if !b.reaches(now, c.layout) {
		b = c.open(lane, now)
	}
	if b.block.Add(n) < 0 {
		c.relieve(b)
	}
}

// AddComplete counts a call of n units as completed after rt nanoseconds, and as an exception if it
// failed. A negative rt counts as 0.
func (c *Counters) AddComplete(lane uint32, now, n, rt int64, failed bool) {
	b := c.newest(lane)
	if !b.reaches(now, c.layout) {
		b = c.open(lane, now)
	}
	rt = max(rt, 0)
	if failed {
		b.exception.Add(n)
	}
	if lowest := b.minRT.Load(); lowest == 0 || rt < lowest-1 {
		b.lowerMinRT(rt)
	}
	if n != 1 {
		b.more.Add(n - 1)
	}
	if rt > shortRT {
		b.longRT.Add(rt)
		rt = 0
	}
	if b.complete.Add(pack(rt))&halfFull != 0 {
		c.relieve(b)
	}
}

// AddLongLived counts a call of n units without a response time as completed, and as an exception
// if it failed. Such calls are rare, so they can wait for the lock, and lanes need no word for
// them.
func (c *Counters) AddLongLived(lane uint32, now, n int64, failed bool) {
	counts := Counts{Complete: n, Exited: 1, LongLived: 1}
	if failed {
		counts.Exception = n
	}
	start := c.bucket(lane, now).start.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(start, &counts)
}

// bucket returns the bucket that a call at now writes to.
func (c *Counters) bucket(lane uint32, now int64) *laneBucket {
	b := c.newest(lane)
	if !b.reaches(now, c.layout) {
		b = c.open(lane, now)
	}
	return b
}

// newest returns the newest bucket of a lane, or nil if the lane doesn't exist yet. newest and
// reaches are inlined; bucket as a whole would not be.
func (c *Counters) newest(lane uint32) *laneBucket {
	if l := c.lanes[lane&uint32(len(c.lanes)-1)].Load(); l != nil {
		return l.newest.Load()
	}
	return nil
}

// open is the slow path of bucket: it makes the lane or turns it.
func (c *Counters) open(i uint32, now int64) *laneBucket {
	p := &c.lanes[i&uint32(len(c.lanes)-1)]
	if p.Load() == nil {
		p.CompareAndSwap(nil, newLane(c.layout, now))
	}
	if l := p.Load(); l != nil {
		if b := l.newest.Load(); now < b.start.Load()+c.layout.fine {
			return b
		}
	}
	return c.turn(p, now)
}

// turn opens the current bucket on a lane. A goroutine that can't get the lock joins the newest
// bucket: the holder is a reader, or is turning a lane itself. If the lane has been idle for so
// long that its newest bucket is outside every window, the call waits for the lock, at most once
// per interval; otherwise no reader would see its count.
func (c *Counters) turn(p *shared.Pointer[lane], now int64) *laneBucket {
	if !c.mu.TryLock() {
		if l := p.Load(); l != nil {
			if b := l.newest.Load(); b.start.Load() >= c.layout.oldest(now) {
				return b
			}
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if p.Load() == nil { // dropped in the meantime
		p.CompareAndSwap(nil, newLane(c.layout, now))
	}
	l := p.Load()
	start := floor(now, c.layout.fine)
	newest := l.newest.Load()
	if start <= newest.start.Load() {
		return newest // another call has turned it
	}
	c.beginSliceLocked(start)
	c.gatherLocked(l, false)
	b := l.slot(start, c.layout)
	if b.start.Load() != never { // otherwise no call ever got this bucket
		c.moveLocked(b)
	}
	b.start.Store(start) // after the counters are zeroed, before any call gets this bucket
	l.newest.Store(b)
	return b
}

// moveLocked moves the counts of a lane bucket to the minute and the totals. The caller holds mu.
func (c *Counters) moveLocked(b *laneBucket) {
	moved := b.drain()
	if moved.empty() {
		return
	}
	start := b.start.Load()
	c.keep(start, &moved)
	c.emptied(start)
}

// emptied records that the bucket that begins at start was moved.
func (c *Counters) emptied(start int64) {
	if start > never {
		c.passed = max(c.passed, start+c.layout.fine)
	}
}

// keep adds counts to the totals and to the second that contains start, unless that second is older
// than the minute.
func (c *Counters) keep(start int64, moved *Counts) {
	c.totals.Add(moved)
	if start <= never {
		return
	}
	if c.minute.empty() {
		c.moved, c.passed = never, never
	}
	c.moved = max(c.moved, start+c.layout.fine)
	c.minute.add(start, moved)
}

// relieve moves a bucket's counts out early, because a packed word is half full or has the bit of a
// dropped bucket. One call in millions gets here, so it can wait for the lock.
func (c *Counters) relieve(b *laneBucket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var moved Counts
	start := b.start.Load()
	if start == left {
		moved = b.leave()
	} else {
		moved = b.drain()
	}
	c.enterLocked(start, &moved)
	c.emptied(start)
}

// enterLocked adds counts that are in no lane to the second window, the minute and the totals. The
// caller holds mu.
func (c *Counters) enterLocked(start int64, counts *Counts) {
	c.keep(start, counts)
	if start <= never {
		return
	}
	if c.relieved == nil {
		c.relieved = newRing[Counts](c.layout.interval, c.layout.buckets)
	}
	if still, ok := c.relieved.Open(start); ok {
		still.Value.Add(counts)
	}
}

func newRing[T any](interval, buckets int64) *LeapArray[T] {
	ring, err := NewLeapArray[T](time.Duration(interval), int(buckets))
	if err != nil {
		panic(err) // the layout was validated
	}
	return ring
}

// liveLocked yields every bucket of every lane. The caller holds mu.
func (c *Counters) liveLocked() iter.Seq[*laneBucket] {
	return func(yield func(*laneBucket) bool) {
		for i := range c.lanes {
			l := c.lanes[i].Load()
			if l == nil {
				continue
			}
			for j := range l.buckets {
				if !yield(&l.buckets[j]) {
					return
				}
			}
		}
	}
}

// settleLocked moves every expired bucket. The caller holds mu.
func (c *Counters) settleLocked(now int64) {
	c.shrinkLocked(now)
	c.gatherAll()
	expired := floor(now, c.layout.fine) - c.layout.interval
	for b := range c.liveLocked() {
		if b.start.Load() <= expired {
			c.moveLocked(b)
		}
	}
}

// shrinkLocked drops the lanes and the minute if none of their counts is still in a window. The
// caller holds mu.
func (c *Counters) shrinkLocked(now int64) {
	since := c.since(now)
	for i := range c.lanes {
		if l := c.lanes[i].Load(); l != nil && l.newest.Load().start.Load()+c.layout.fine <= since {
			c.dropLane(&c.lanes[i], l)
		}
	}
	if !c.minute.empty() && c.moved <= startOfMinute(now) {
		c.minute = minute{}
	}
	if c.times != nil && c.times.start < sinceSlice(now) && c.Lanes() == 0 {
		c.times = nil
	}
}

// dropLane drops a lane. A call that got one of its buckets earlier may still add a count that no
// reader finds; it sees the mark in the word and moves the count to the totals, which have the
// lane's other counts. An add before the swap of a word is in the swapped value, and an add after
// it sees the mark. No later call gets these buckets, because they have the oldest possible start.
func (c *Counters) dropLane(p *shared.Pointer[lane], l *lane) {
	c.gatherLocked(l, true) // first: a call whose end is found there has already added to its bucket
	for i := range l.buckets {
		counts := l.buckets[i].leave()
		c.totals.Add(&counts)
	}
	p.Store(nil)
}

// since returns the start of the oldest span that has counts here.
func (c *Counters) since(now int64) int64 { return min(startOfMinute(now), c.layout.oldest(now)) }

// startOfMinute returns the start of the oldest of the last 60 seconds, including the current one.
func startOfMinute(now int64) int64 {
	return floor(now, int64(time.Second)) - (minuteBuckets-1)*int64(time.Second)
}
