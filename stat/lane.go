package stat

import (
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// laneBucket is one slice of time on one lane, exactly one cache line: a call
// that records an outcome touches one line and shares it with the callers of its
// own lane only. A test pins the size.
//
// pass and complete hold calls and units in one word (see pack), so that calls
// in flight and response times per call cost no further write.
type laneBucket struct {
	start     shared.Int64
	pass      shared.Uint64
	block     shared.Int64
	exception shared.Int64
	complete  shared.Uint64
	rt        shared.Int64
	occupied  shared.Int64
	minRT     shared.Int64 // plus one; 0 is none
}

// A lane is a ring of buckets. newest is the one that calls write to; it only
// moves to later buckets.
type lane struct {
	newest  shared.Pointer[laneBucket]
	buckets []laneBucket
}

// newLane returns a lane whose newest bucket is that of now.
func newLane(layout *Layout, now int64) *lane {
	l := &lane{buckets: make([]laneBucket, layout.buckets)}
	for i := range l.buckets {
		l.buckets[i].start.Store(never)
	}
	start := floor(now, layout.fine)
	b := l.slot(start, layout)
	b.start.Store(start)
	l.newest.Store(b)
	return l
}

// slot is where the bucket that begins at start stands.
func (l *lane) slot(start int64, layout *Layout) *laneBucket {
	i := start / layout.fine % layout.buckets
	if i < 0 {
		i += layout.buckets // before 1970
	}
	return &l.buckets[i]
}

// A packed word has 24 bits of calls above 40 bits of units. A call takes at
// most MaxUnits. The adder that sees a half-full word empties it (relieve), so
// that for a word to overflow, 2^23 calls, or 2^19 of the largest, would have
// to be held up between adding and looking at the result.
const (
	unitBits  = 40
	unitMask  = 1<<unitBits - 1
	oneCall   = 1 << unitBits
	halfFull  = 1<<63 | 1<<(unitBits-1)
	callShift = unitBits

	// MaxUnits is the most units that one call may take.
	MaxUnits = 1 << 20
)

func pack(units int64) uint64 { return oneCall | uint64(units)&unitMask }

func unpack(word uint64) (calls, units int64) {
	return int64(word >> callShift), int64(word & unitMask)
}

// counts reads the bucket. What completed is read before what passed, so a call
// that is seen to have exited is also seen to have entered.
func (b *laneBucket) counts() Counts {
	c := Counts{minRT: b.minRT.Load(), RT: time.Duration(b.rt.Load())}
	c.Exited, c.Complete = unpack(b.complete.Load())
	c.Exception = b.exception.Load()
	c.Block = b.block.Load()
	c.Occupied = b.occupied.Load()
	c.Entered, c.Pass = unpack(b.pass.Load())
	return c
}

// drain empties the bucket and returns what was in it. Each counter is swapped,
// so an adder's count is either in what is returned or still in the bucket.
func (b *laneBucket) drain() Counts {
	c := Counts{minRT: b.minRT.Swap(0), RT: time.Duration(b.rt.Swap(0))}
	c.Exited, c.Complete = unpack(b.complete.Swap(0))
	c.Exception = b.exception.Swap(0)
	c.Block = b.block.Swap(0)
	c.Occupied = b.occupied.Swap(0)
	c.Entered, c.Pass = unpack(b.pass.Swap(0))
	return c
}

func (b *laneBucket) lowerMinRT(rt int64) {
	for {
		old := b.minRT.Load()
		if old != 0 && old <= rt+1 || b.minRT.CompareAndSwap(old, rt+1) {
			return
		}
	}
}
