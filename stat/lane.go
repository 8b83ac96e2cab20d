package stat

import (
	"math"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// laneBucket is one slice of time on one lane, exactly one cache line: a call
// that records an outcome touches one line and shares it with the callers of its
// own lane only. A test pins the size.
//
// pass holds calls and units in one word (see pack), complete calls and what they took.
// So a short call of one unit, as nearly all are, makes one write when it enters and one when it
// exits; what is rare has words of its own.
type laneBucket struct {
	start     shared.Int64
	pass      shared.Uint64 // calls and units
	block     shared.Int64
	exception shared.Int64
	complete  shared.Uint64 // calls, and the response times of those that were short
	more      shared.Int64  // units that completed, beyond one for each call
	longRT    shared.Int64  // response times of the other calls
	minRT     shared.Int64  // plus one; 0 is none
}

// reaches reports whether the bucket, if there is one, ends after now.
func (b *laneBucket) reaches(now int64, layout *Layout) bool {
	return b != nil && now < b.start.Load()+layout.fine
}

// A lane is a ring of buckets. newest is the one that calls write to; it only
// moves to later buckets.
type lane struct {
	newest  shared.Pointer[laneBucket]
	buckets []laneBucket
	times   shared.Pointer[laneTimes] // of calls that are timed; nil before the first
}

// twoBuckets is a lane with two buckets, as most have, in one object: whatever a call touches is in
// one place. On 64 bits its buckets begin where cache lines do; on 32 the runtime puts a word
// before an object of that size.
type twoBuckets struct {
	lane
	_       [24]byte
	buckets [2]laneBucket
}

// newLane returns a lane whose newest bucket is that of now.
func newLane(layout *Layout, now int64) *lane {
	var l *lane
	if layout.buckets == 2 && bits.UintSize == 64 {
		two := new(twoBuckets)
		l = &two.lane
		l.buckets = two.buckets[:]
	} else {
		l = &lane{buckets: make([]laneBucket, layout.buckets)}
	}
	for i := range l.buckets {
		l.buckets[i].start.Store(never)
	}
	start := floor(now, layout.fine)
	b := l.slot(start, layout)
	b.start.Store(start)
	l.newest.Store(b)
	return l
}

// slot is the slot of the bucket that begins at start.
func (l *lane) slot(start int64, layout *Layout) *laneBucket {
	i := start / layout.fine % layout.buckets
	if i < 0 {
		i += layout.buckets // before 1970
	}
	return &l.buckets[i]
}

// A packed word has 24 bits of calls above 40 bits of an amount: units, or nanoseconds.
// A call takes at most MaxUnits, and at most shortRT is packed. The adder that sees a
// half-full word empties it (relieve), so for a word to overflow, 2^23 calls, or 2^19 of the
// largest, would have to be delayed between adding and looking at the result.
const (
	amountBits = 40
	amountMask = 1<<amountBits - 1
	halfFull   = 1<<63 | 1<<(amountBits-1)

	// shortRT is the longest response time in a packed word, a little over a millisecond: for a
	// call that took longer, one more write is negligible.
	shortRT = 1 << 20

	// MaxUnits is the most units that one call may take.
	MaxUnits = 1 << 20
)

func pack(amount int64) uint64 { return 1<<amountBits | uint64(amount)&amountMask }

func unpack(word uint64) (calls, amount int64) {
	return int64(word >> amountBits), int64(word & amountMask)
}

// completed is the calls and units that completed.
func (b *laneBucket) completed() (calls, units int64) {
	calls, _ = unpack(b.complete.Load())
	return calls, calls + b.more.Load()
}

// counts reads the bucket. What completed is read before what passed, so a call
// that is seen to have exited is also seen to have entered.
func (b *laneBucket) counts() Counts {
	c := Counts{minRT: b.minRT.Load()}
	c.complete(b.complete.Load(), b.more.Load(), b.longRT.Load())
	c.Exception = b.exception.Load()
	c.Block = b.block.Load()
	c.Entered, c.Pass = unpack(b.pass.Load())
	return c
}

// drain empties the bucket and returns what was in it. Each counter is swapped,
// so an adder's count is either in what is returned or still in the bucket.
func (b *laneBucket) drain() Counts {
	c := Counts{minRT: b.minRT.Swap(0)}
	c.complete(b.complete.Swap(0), b.more.Swap(0), b.longRT.Swap(0))
	c.Exception = b.exception.Swap(0)
	c.Block = b.block.Swap(0)
	c.Entered, c.Pass = unpack(b.pass.Swap(0))
	return c
}

// left is the start of the buckets of a lane that has been dropped. In these the words that an
// adder looks at last have the highest bit set for good: a goroutine that still adds there sees it,
// and moves on what it added.
const (
	left    = never - 1
	leftBit = 1 << 63
)

// leave drops the bucket, and returns what was in it. Otherwise it is drain.
func (b *laneBucket) leave() Counts {
	mask := uint64(0)
	if b.start.Load() == left {
		mask = leftBit // that it has left already
	}
	b.start.Store(left)
	c := Counts{minRT: b.minRT.Swap(0)}
	c.complete(b.complete.Swap(leftBit)&^mask, b.more.Swap(0), b.longRT.Swap(0))
	c.Exception = b.exception.Swap(0)
	c.Block = int64(uint64(b.block.Swap(math.MinInt64)) &^ mask)
	c.Entered, c.Pass = unpack(b.pass.Swap(leftBit) &^ mask)
	return c
}

// complete fills in what completed.
func (c *Counts) complete(word uint64, more, longRT int64) {
	calls, rt := unpack(word)
	c.Exited, c.Complete, c.RT = calls, calls+more, time.Duration(rt+longRT)
}

func (b *laneBucket) lowerMinRT(rt int64) {
	for {
		old := b.minRT.Load()
		if old != 0 && old <= rt+1 || b.minRT.CompareAndSwap(old, rt+1) {
			return
		}
	}
}
