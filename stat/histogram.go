package stat

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// Histogram counts response times of the last minute by their length, so that it can be said
// which of them a share of the calls stayed below. The zero value is ready and holds nothing until
// the first Add. It is safe for concurrent use.
//
// Its buckets are log-linear: sixteen between each power of two and the next. A response time is
// told as a value between the bounds of its bucket, chosen so that it is wrong by the same
// share at both: 1/33, which is 3.03 %. Below 16 ns each has a bucket of its own, and what takes
// longer than 18 minutes counts as that.
//
// # No count is lost or doubled
//
// A call adds one to a word that only ever grows, on a stripe that it shares with few others, and
// takes no lock. Every five seconds the call that is first, or a reader, takes what all stripes have
// by then, less what they had the last time, as one more slice of the minute; it holds mu. So a
// count is in exactly one slice, or after the latest: at worst in the one after its own or before
// it, if it was added while that was taken. The words are of 32 bits and may overflow: only differences
// are looked at.
//
// # Memory
//
// A stripe, of which there are eight at most and as few as calls run at the same time, takes 2.3 KiB,
// what was taken the last time another 2.3 KiB, and a slice two or three bytes for each bucket in
// it. That is about 6 KiB where calls take from 1 to 100 ms on two processors, and 66 KiB at the most.
type Histogram struct {
	stripes [histogramStripes]shared.Pointer[histogramStripe]
	end     shared.Int64 // of the slice that is running; set before the first stripe

	mu     shared.Mutex
	taken  *[histogramBuckets]uint32 // of all stripes, with the latest slice
	slices [histogramSlices]histogramSlice
}

const (
	histogramStripes = 8

	// histogramSlices are those that are over. Together with the one that is running they are
	// the last 55 to 60 seconds.
	histogramSlices     = 11
	histogramSliceWidth = int64(5 * time.Second)

	octaveBits       = 4       // sixteen buckets for each power of two
	longestRT        = 1 << 40 // 18 minutes
	histogramBuckets = (40 - octaveBits + 1) << octaveBits
)

type histogramStripe struct {
	counts [histogramBuckets]shared.Uint32
}

// histogramSlice is what came in five seconds: of each bucket that has some, how many buckets lie
// between it and the one before, and how many came.
type histogramSlice struct {
	start  int64
	counts []byte
}

// bucketOf is where a response time counts.
func bucketOf(rt int64) int {
	if rt >= longestRT {
		rt = longestRT - 1
	}
	if rt < 1<<octaveBits {
		return int(max(rt, 0))
	}
	shift := bits.Len64(uint64(rt)) - octaveBits - 1
	return shift<<octaveBits + int(rt>>shift)
}

// valueOf is what the response times of a bucket are told as.
func valueOf(bucket int) time.Duration {
	if bucket < 1<<octaveBits {
		return time.Duration(bucket)
	}
	shift := bucket>>octaveBits - 1
	low := int64(bucket-shift<<octaveBits) << shift
	high := low + 1<<shift
	return time.Duration(2 * (float64(low) / float64(low+high)) * float64(high)) // the harmonic mean
}

// Add counts the response time of a call on a lane, see [Counters].
func (h *Histogram) Add(lane uint32, now, rt int64) {
	s := h.stripes[lane%histogramStripes].Load()
	if s == nil {
		s = h.stripe(lane, now)
	}
	if now >= h.end.Load() && h.mu.TryLock() {
		h.turn(now)
		h.mu.Unlock()
	}
	s.counts[bucketOf(rt)].Add(1)
}

// stripe makes a stripe if it is not there.
func (h *Histogram) stripe(lane uint32, now int64) *histogramStripe {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == nil {
		h.taken = new([histogramBuckets]uint32)
		h.end.Store(floor(now, histogramSliceWidth) + histogramSliceWidth)
	}
	p := &h.stripes[lane%histogramStripes]
	if p.Load() == nil {
		p.Store(new(histogramStripe))
	}
	return p.Load()
}

// turn closes the slice that was running if it is over. The caller holds mu.
func (h *Histogram) turn(now int64) {
	end := h.end.Load()
	if h.taken == nil || now < end {
		return
	}
	oldest := &h.slices[0]
	for i := range h.slices {
		if h.slices[i].start < oldest.start {
			oldest = &h.slices[i]
		}
	}
	counts, last := oldest.counts[:0], -1
	for i, n := range h.running() {
		if n > 0 {
			counts = binary.AppendUvarint(binary.AppendUvarint(counts, uint64(i-last-1)), uint64(n))
			last = i
			h.taken[i] += n
		}
	}
	if 2*len(counts) < cap(counts) { // of a time when more was to be kept
		counts = append(make([]byte, 0, len(counts)), counts...)
	}
	oldest.start, oldest.counts = end-histogramSliceWidth, counts
	h.end.Store(floor(now, histogramSliceWidth) + histogramSliceWidth)
}

// running is what came since the latest slice. The caller holds mu.
func (h *Histogram) running() (counts [histogramBuckets]uint32) {
	for i := range h.stripes {
		if s := h.stripes[i].Load(); s != nil {
			for j := range counts {
				counts[j] += s.counts[j].Load()
			}
		}
	}
	for j := range counts {
		counts[j] -= h.taken[j]
	}
	return counts
}

// Percentiles say how long calls of the last minute took: P95 is what 95 of 100 stayed at or
// below. The zero value says that none completed.
type Percentiles struct {
	Count         int64 // calls
	P50, P95, P99 time.Duration
}

// Percentiles are those of the last 55 to 60 seconds. They are within 3.1 % of the response time
// that has that rank.
func (h *Histogram) Percentiles(now int64) Percentiles {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == nil {
		return Percentiles{}
	}
	h.turn(now)
	var sums [histogramBuckets]int64
	p := Percentiles{}
	for i, n := range h.running() {
		sums[i] = int64(n)
		p.Count += int64(n)
	}
	since := floor(now, histogramSliceWidth) - histogramSlices*histogramSliceWidth
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
			p.Count += int64(n)
		}
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
