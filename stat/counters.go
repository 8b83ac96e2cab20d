package stat

import (
	"iter"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Counters count what happens on one node, for people: a second window striped
// over lanes, the last minute second by second, and totals since the start. They
// are safe for concurrent use.
//
// Calls write to the newest bucket of their lane without waiting. Which lane is
// the caller's choice: any number below [Layout.Lanes]; callers that run at the
// same time should use different ones.
//
// # No count is lost or doubled
//
// The minute and the totals are not written by calls. When a lane bucket has
// expired, its counts are moved there, under mu: each counter is swapped to zero,
// added to the second of the bucket's own start and to the totals, and the new
// start is stored last. An adder that is late adds to a bucket that has been
// recycled meanwhile: its count falls into a newer bucket, not into nowhere.
// A call takes mu only with TryLock; if that fails, another goroutine holds it, and the call adds
// to its lane's newest bucket as it stands, as long as the second window has that.
//
// Readers take mu and roll every expired bucket first. Only holders of mu move
// counts, so for a reader each counter's totals plus what is live in the lanes is
// exact and never decreases. Different counters are not read at one instant.
//
// # Counters that include others
//
// Where every call that is counted on one node counts on another as well, it is counted on the
// one, and the other includes it (see [Counters.Include]): readers add the two up. So the call
// writes once. Readers take mu of both, first that of the Counters that include.
type Counters struct {
	layout *Layout
	lanes  []shared.Pointer[lane]  // a power of two of them, each made on first use
	few    [4]shared.Pointer[lane] // where they are if there are at most four: close at hand

	mu       shared.Mutex
	totals   Counts             // what was moved out of the lanes
	minute   minute             // the same by the second
	moved    int64              // when the newest bucket ended whose counts are there
	passed   int64              // the same of those that were moved out of a lane
	relieved *LeapArray[Counts] // moved out before its time or never in a lane, still in the second window
	times    *histogram         // of calls that were timed, or nil
	part     *Counters          // included, or nil
}

// Init makes the zero Counters ready. It is not safe for concurrent use.
func (c *Counters) Init(layout *Layout) {
	c.layout = layout
	if c.lanes = c.few[:min(layout.lanes, len(c.few))]; layout.lanes > len(c.few) {
		c.lanes = make([]shared.Pointer[lane], layout.lanes)
	}
}

// Include makes c count everything that part counts, from now on. It returns false, and does
// nothing, if c includes others already: one is enough for nearly all, and readers need not lock
// many. part must be fresh, without a part of its own, and seen by no caller yet: so none of its
// calls was counted on c.
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

// AddOccupied counts n units, counted as admitted too, as borrowed. Their call has
// waited for its bucket, so it may wait for the lock, and lanes need no word for them.
func (c *Counters) AddOccupied(lane uint32, now, n int64) {
	start := c.bucket(lane, now).start.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterLocked(start, &Counts{Occupied: n})
}

// AddBlock counts n units as refused.
func (c *Counters) AddBlock(lane uint32, now, n int64) {
	b := c.newest(lane)
	if !b.reaches(now, c.layout) {
		b = c.open(lane, now)
	}
	if b.block.Add(n) < 0 {
		c.relieve(b)
	}
}

// AddComplete counts a call of n units as completed after rt nanoseconds, and as
// an exception if it failed. A negative rt counts as 0.
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

// AddLongLived counts a call of n units that has no response time as completed, and as an
// exception if it failed. Such calls are few, so they may wait for the lock, and lanes need no
// word for them.
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

// newest is the newest bucket of a lane, nil if there is no such lane yet. It is inlined,
// as is reaches, where bucket as a whole is not.
func (c *Counters) newest(lane uint32) *laneBucket {
	if l := c.lanes[lane&uint32(len(c.lanes)-1)].Load(); l != nil {
		return l.newest.Load()
	}
	return nil
}

// open is bucket where the lane is to be made or turned.
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

// turn opens the bucket of now on a lane. A goroutine that can't have the lock joins the newest
// bucket as it stands: the holder is a reader, or is turning a lane now. If the lane has rested,
// its newest bucket is no longer in any window; then the call waits, at most once per interval,
// rather than be missed by all readers.
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
	if p.Load() == nil { // let go since
		p.CompareAndSwap(nil, newLane(c.layout, now))
	}
	l := p.Load()
	start := floor(now, c.layout.fine)
	newest := l.newest.Load()
	if start <= newest.start.Load() {
		return newest // another call turned it since
	}
	c.beginSliceLocked(start)
	c.gatherLocked(l, false)
	b := l.slot(start, c.layout)
	if b.start.Load() != never { // no call was ever sent there
		c.moveLocked(b)
	}
	b.start.Store(start) // after the counters are empty, before any call is sent here
	l.newest.Store(b)
	return b
}

// moveLocked empties a lane bucket into the minute and the totals. The caller holds mu.
func (c *Counters) moveLocked(b *laneBucket) {
	moved := b.drain()
	if moved.empty() {
		return
	}
	start := b.start.Load()
	c.keep(start, &moved)
	c.emptied(start)
}

// emptied notes that the bucket of start was moved.
func (c *Counters) emptied(start int64) {
	if start > never {
		c.passed = max(c.passed, start+c.layout.fine)
	}
}

// keep adds counts to the totals and to the second of start, unless that second
// is older than the minute.
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

// relieve moves a bucket's counts out before its time because a packed word is
// half full, or has the bit of a dropped bucket. One call in millions gets here, so it may wait for
// the lock.
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

// enterLocked counts what is in no lane: in the second window, the minute and the totals. The
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

// shrinkLocked drops the lanes and the minute if nothing in them counts any longer; a node that was idle
// for that long might as well have left altogether. The caller holds mu.
func (c *Counters) shrinkLocked(now int64) {
	since := c.since(now)
	for i := range c.lanes {
		if l := c.lanes[i].Load(); l != nil && l.newest.Load().start.Load()+c.layout.fine <= since {
			c.letGo(&c.lanes[i], l)
		}
	}
	if !c.minute.empty() && c.moved <= startOfMinute(now) {
		c.minute = minute{}
	}
	if c.times != nil && c.times.start < sinceSlice(now) && c.Lanes() == 0 {
		c.times = nil
	}
}

// letGo drops a lane. A call that was sent there before may add what is never read; it sees the
// mark, and then counts it in the totals, where the rest of the lane is: what was added before a
// word is swapped is in what was found there, and a call that adds after that sees the mark. No
// later call is sent there: its buckets have the oldest possible start.
func (c *Counters) letGo(p *shared.Pointer[lane], l *lane) {
	c.gatherLocked(l, true) // first: a call whose end is found there has added to its bucket before
	for i := range l.buckets {
		counts := l.buckets[i].leave()
		c.totals.Add(&counts)
	}
	p.Store(nil)
}

// since is when the oldest time began that anything here counts.
func (c *Counters) since(now int64) int64 { return min(startOfMinute(now), c.layout.oldest(now)) }

// startOfMinute is when the oldest of the last 60 whole or begun seconds began.
func startOfMinute(now int64) int64 {
	return floor(now, int64(time.Second)) - (minuteBuckets-1)*int64(time.Second)
}
