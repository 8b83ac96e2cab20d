package stat

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// laneTimes counts the calls that complete on a lane by response time, for [Counters.AddTimed]. Its
// words are packed like a bucket's word for completed calls (see pack), and a timed call adds to
// one of them instead of the bucket's word, so response times cost no further write.
//
// The words carry no time: they belong to the newest bucket of the lane. A goroutine that turns the
// lane or reads it holds mu, and moves the words to the histogram and to the destination of
// relieve. The reasoning there applies here too: words are swapped, so a count is either in the
// swapped value or stays for the next swap, and the words of a dropped lane carry a mark, which
// makes a late adder move its count on. Octaves are made only under mu, so a dropped lane gets
// none.
type laneTimes struct {
	octaves [histogramOctaves]shared.Pointer[octave]
}

// octave holds the sixteen words between a power of two and the next. It is made for the first call
// that takes that long: most resources need few.
type octave [1 << octaveBits]shared.Uint64

// histogram counts the calls of the last minute by response time, in slices of five seconds: the
// latest unpacked, earlier ones packed. Buckets are log-linear: sixteen between each power of two
// and the next. The reported value lies between a bucket's bounds, with the same maximum relative
// error towards both: 1/33, or 3.03 %. Below 16 ns each value has its own bucket; values above 18
// minutes count as 18 minutes.
//
// It belongs to Counters, whose mu guards it. The first timed call makes it.
//
// # Memory
//
// The latest slice takes 2.3 KiB, and each earlier one two or three bytes per bucket used; a lane
// takes 0.3 KiB and 128 bytes for each octave used. With response times from 1 to 100 ms on two
// processors this adds up to about 7 KiB. The maximum, with response times from nanoseconds to
// minutes in every slice, is 48 KiB plus 5 KiB for each lane.
type histogram struct {
	start  int64 // of the latest slice
	latest [histogramBuckets]uint32
	slices [histogramSlices]histogramSlice
}

const (
	// histogramSlices is the number of slices before the latest. Together with the latest they
	// cover the last 55 to 60 seconds.
	histogramSlices     = 11
	histogramSliceWidth = int64(5 * time.Second)

	octaveBits       = 4       // sixteen buckets for each power of two
	longestRT        = 1 << 40 // 18 minutes
	histogramOctaves = 40 - octaveBits + 1
	histogramBuckets = histogramOctaves << octaveBits
)

// histogramSlice is the packed form of five seconds: for each bucket that isn't empty, the number
// of buckets skipped since the previous one, and its count.
type histogramSlice struct {
	start  int64
	counts []byte
}

// bucketOf returns the bucket of a response time: its octave and the step within it.
func bucketOf(rt int64) (octave, step int) {
	rt = min(rt, longestRT-1)
	octave = bits.Len64(uint64(rt)|(1<<octaveBits-1)) - octaveBits
	return octave, int(rt>>max(octave-1, 0)) & (1<<octaveBits - 1)
}

// valueOf returns the value reported for the response times in a bucket.
func valueOf(bucket int) time.Duration {
	if bucket < 1<<octaveBits {
		return time.Duration(bucket)
	}
	shift := bucket>>octaveBits - 1
	low := int64(bucket-shift<<octaveBits) << shift
	high := low + 1<<shift
	return time.Duration(2 * (float64(low) / float64(low+high)) * float64(high)) // the harmonic mean
}

// AddTimed is like [Counters.AddComplete], but also includes the call in [Counters.Percentiles].
func (c *Counters) AddTimed(lane uint32, now, n, rt int64, failed bool) {
	rt = max(rt, 0)
	class, step := bucketOf(rt)
	p := &c.lanes[lane&uint32(len(c.lanes)-1)]
	l := p.Load()
	if l == nil || !l.newest.Load().reaches(now, c.layout) {
		c.open(lane, now)
		l = p.Load()
	}
	words := l.octave(class)
	if words == nil {
		l, words = c.openOctave(p, now, class)
	}
	b := l.newest.Load() // of the same lane: if it is dropped, the mark in its words shows that for both
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
	if words[step].Add(pack(rt))&halfFull != 0 {
		c.relieveTimed(l, b)
	}
}

// octave returns the octave with the given number, or nil if the lane doesn't have it.
func (l *lane) octave(class int) *octave {
	if l != nil {
		if t := l.times.Load(); t != nil {
			return t.octaves[class].Load()
		}
	}
	return nil
}

// relieveTimed is like relieve, but for a timed call.
func (c *Counters) relieveTimed(l *lane, b *laneBucket) {
	c.mu.Lock()
	c.gatherLocked(l, false)
	gone := b.start.Load() == left
	c.mu.Unlock()
	if gone {
		c.relieve(b)
	}
}

// openOctave makes an octave if there is none, on a lane that is not dropped. It returns both.
func (c *Counters) openOctave(p *shared.Pointer[lane], now int64, class int) (*lane, *octave) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Load() == nil {
		p.CompareAndSwap(nil, newLane(c.layout, now))
	}
	l := p.Load()
	if c.times == nil {
		c.times = &histogram{start: never}
	}
	c.beginSliceLocked(l.newest.Load().start.Load())
	t := l.times.Load()
	if t == nil {
		t = new(laneTimes)
		l.times.Store(t)
	}
	if t.octaves[class].Load() == nil {
		t.octaves[class].Store(new(octave))
	}
	return l, t.octaves[class].Load()
}

// gatherLocked moves the timed calls of a lane to the minute, the totals and the histogram, and
// reports whether there were any. From a lane that is being or was dropped, it moves them only to
// the totals. The caller holds mu.
func (c *Counters) gatherLocked(l *lane, leaves bool) bool {
	t := l.times.Load()
	if t == nil {
		return false
	}
	start, empty, mark := l.newest.Load().start.Load(), uint64(0), uint64(0)
	switch {
	case start == left:
		empty, mark = leftBit, leftBit
	case leaves: // the highest bit of a word is still part of its count
		start, empty = left, leftBit
	}
	var sum Counts
	for i := range t.octaves {
		words := t.octaves[i].Load()
		if words == nil {
			continue
		}
		for j := range words {
			if empty == mark && words[j].Load() == empty {
				continue
			}
			calls, rt := unpack(words[j].Swap(empty) &^ mark)
			sum.Exited += calls
			sum.RT += time.Duration(rt)
			if start != left {
				c.times.latest[i<<octaveBits+j] += uint32(calls)
			}
		}
	}
	if sum.Exited == 0 {
		return false
	}
	sum.Complete = sum.Exited
	c.enterLocked(start, &sum)
	return true
}

// gatherAll calls gatherLocked for all lanes.
func (c *Counters) gatherAll() (any bool) {
	if c.times == nil {
		return false
	}
	for i := range c.lanes {
		if l := c.lanes[i].Load(); l != nil && c.gatherLocked(l, false) {
			any = true
		}
	}
	return any
}

// beginSliceLocked closes the latest slice of the histogram, if there is one, when the slice that
// contains start begins. It is called before a bucket is opened on a lane, so every count in a lane
// belongs to the closed slice, or to an earlier slice if it is late. The caller holds mu.
func (c *Counters) beginSliceLocked(start int64) {
	h := c.times
	if start = floor(start, histogramSliceWidth); h == nil || start <= h.start {
		return
	}
	c.gatherAll()
	oldest := &h.slices[0]
	for i := range h.slices {
		if h.slices[i].start < oldest.start {
			oldest = &h.slices[i]
		}
	}
	counts, last := oldest.counts[:0], -1
	for i, n := range h.latest {
		if n > 0 {
			counts = binary.AppendUvarint(binary.AppendUvarint(counts, uint64(i-last-1)), uint64(n))
			last = i
		}
	}
	if 2*len(counts) < cap(counts) { // sized for a busier slice
		counts = append(make([]byte, 0, len(counts)), counts...)
	}
	oldest.start, oldest.counts = h.start, counts
	h.start, h.latest = start, [histogramBuckets]uint32{}
}

// sinceSlice returns the start of the oldest slice that counts at now.
func sinceSlice(now int64) int64 {
	return floor(now, histogramSliceWidth) - histogramSlices*histogramSliceWidth
}

// addTo adds the slices that count at now to sums, and returns the number of their calls.
func (h *histogram) addTo(sums *[histogramBuckets]int64, now int64) (count int64) {
	since := sinceSlice(now)
	if h.start >= since {
		for i, n := range h.latest {
			sums[i] += int64(n)
			count += int64(n)
		}
	}
	for i := range h.slices {
		s := &h.slices[i]
		if s.start < since {
			continue
		}
		bucket := -1
		for rest := s.counts; len(rest) > 0; {
			gap, size := binary.Uvarint(rest)
			n, more := binary.Uvarint(rest[size:])
			rest = rest[size+more:]
			bucket += int(gap) + 1
			sums[bucket] += int64(n)
			count += int64(n)
		}
	}
	return count
}

// Percentiles summarize the response times of the calls of the last minute: 95 of 100 calls took
// P95 or less. The zero value means that no call completed.
type Percentiles struct {
	Count         int64 // calls
	P50, P95, P99 time.Duration
}

// Percentiles returns the percentiles of the last 55 to 60 seconds, over the calls that were
// counted with [Counters.AddTimed]. Each is within 3.1 % of the response time at that rank.
func (c *Counters) Percentiles(now int64) Percentiles {
	c.lock()
	defer c.unlock()
	var sums [histogramBuckets]int64
	p := Percentiles{}
	for side := range c.allLocked() {
		if side.times != nil {
			side.settleLocked(now)
		}
		if side.times != nil { // it still counts
			p.Count += side.times.addTo(&sums, now)
		}
	}
	if p.Count == 0 {
		return p
	}
	var below int64
	for i, n := range sums {
		if n == 0 {
			continue
		}
		before := below
		below += n
		for _, q := range []struct {
			percent int64
			is      *time.Duration
		}{{50, &p.P50}, {95, &p.P95}, {99, &p.P99}} {
			if rank := (p.Count*q.percent + 99) / 100; before < rank && rank <= below {
				*q.is = valueOf(i)
			}
		}
	}
	return p
}
