package stat

import (
	"math"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// laneBucket is one slice of time on one lane, exactly one cache line: a call that records an
// outcome touches one line, shared only with callers on the same lane. A test checks the size.
//
// pass packs calls and units into one word (see pack); complete packs calls and their response
// times. So a short call of one unit, like nearly all calls, makes one write when it enters and one
// when it exits; rare events have separate words.
type laneBucket struct {
	start     shared.Int64
	pass      shared.Uint64 // calls and units
	block     shared.Int64
	exception shared.Int64
	complete  shared.Uint64 // calls, and the response times of short ones
	more      shared.Int64  // completed units beyond one for each call
	longRT    shared.Int64  // response times of longer calls
	minRT     shared.Int64  // plus one; 0 means none
}

// reaches reports whether the bucket exists and ends after now.
func (b *laneBucket) reaches(now int64, layout *Layout) bool {
	return b != nil && now < b.start.Load()+layout.fine
}

// lane is a ring of buckets. Calls write to newest, which only moves to later buckets.
type lane struct {
	newest  shared.Pointer[laneBucket]
	buckets []laneBucket
	times   shared.Pointer[laneTimes] // of timed calls; nil before the first
}

// twoBuckets is a lane with two buckets, like most lanes, in one object, so that everything a call
// touches is close together. On 64-bit platforms its buckets are aligned to cache lines; on 32-bit
// platforms the runtime puts a word before an object of that size.
type twoBuckets struct {
	lane
	_       [24]byte
	buckets [2]laneBucket
}

// newLane returns a lane whose newest bucket is the current one.
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

// slot returns the slot of the bucket that begins at start.
func (l *lane) slot(start int64, layout *Layout) *laneBucket {
	i := start / layout.fine % layout.buckets
	if i < 0 {
		i += layout.buckets // before 1970
	}
	return &l.buckets[i]
}

// A packed word has 24 bits for calls above 40 bits for an amount: units, or nanoseconds. A call
// adds at most MaxUnits units, or a response time of at most shortRT. An adder that sees a
// half-full word empties it (relieve), so a word overflows only if 2^23 calls, or 2^19 of the
// largest calls, are delayed between adding and reading the result.
const (
	amountBits = 40
	amountMask = 1<<amountBits - 1
	halfFull   = 1<<63 | 1<<(amountBits-1)

	// shortRT is the maximum response time in a packed word, slightly over a millisecond: for a
	// longer call, an additional write is negligible.
	shortRT = 1 << 20

	// MaxUnits is the maximum number of units of one call.
	MaxUnits = 1 << 20
)

func pack(amount int64) uint64 { return 1<<amountBits | uint64(amount)&amountMask }

func unpack(word uint64) (calls, amount int64) {
	return int64(word >> amountBits), int64(word & amountMask)
}

// completed returns the calls and units that completed.
func (b *laneBucket) completed() (calls, units int64) {
	calls, _ = unpack(b.complete.Load())
	return calls, calls + b.more.Load()
}

// counts reads the bucket: completions before admissions, so a call that is seen to have exited is
// also seen to have entered.
func (b *laneBucket) counts() Counts {
	c := Counts{minRT: b.minRT.Load()}
	c.complete(b.complete.Load(), b.more.Load(), b.longRT.Load())
	c.Exception = b.exception.Load()
	c.Block = b.block.Load()
	c.Entered, c.Pass = unpack(b.pass.Load())
	return c
}

// drain empties the bucket and returns its counts. Each counter is swapped, so an adder's count is
// either in the result or still in the bucket.
func (b *laneBucket) drain() Counts {
	c := Counts{minRT: b.minRT.Swap(0)}
	c.complete(b.complete.Swap(0), b.more.Swap(0), b.longRT.Swap(0))
	c.Exception = b.exception.Swap(0)
	c.Block = b.block.Swap(0)
	c.Entered, c.Pass = unpack(b.pass.Swap(0))
	return c
}

// left is the start of the buckets of a dropped lane. In these buckets, the words that an adder
// checks last keep the highest bit set: a goroutine that still adds there sees the bit and moves
// its count on.
const (
	left    = never - 1
	leftBit = 1 << 63
)

// leave is like drain, but for a bucket that is being dropped.
func (b *laneBucket) leave() Counts {
	mask := uint64(0)
	if b.start.Load() == left {
		mask = leftBit // it was dropped before
	}
	b.start.Store(left)
	c := Counts{minRT: b.minRT.Swap(0)}
	c.complete(b.complete.Swap(leftBit)&^mask, b.more.Swap(0), b.longRT.Swap(0))
	c.Exception = b.exception.Swap(0)
	c.Block = int64(uint64(b.block.Swap(math.MinInt64)) &^ mask)
	c.Entered, c.Pass = unpack(b.pass.Swap(leftBit) &^ mask)
	return c
}

// complete fills in the completions.
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
