package stat

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each response time is told within 3.1 %, and the buckets follow each other without a gap.
func TestHistogramBuckets(t *testing.T) {
	rng := random(t)
	check := func(rt int64) {
		told := float64(valueOf(bucketOf(rt)))
		require.LessOrEqual(t, math.Abs(told-float64(rt)), 0.0304*float64(rt), "%d is told as %f", rt, told)
	}
	last := -1
	for rt := range int64(1 << 12) {
		check(rt)
		bucket := bucketOf(rt)
		require.True(t, bucket == last || bucket == last+1)
		last = bucket
	}
	for shift := 4; shift < 40; shift++ {
		for step := range int64(16) {
			low := (16 + step) << (shift - 4)
			check(low)
			require.Equal(t, bucketOf(low-1)+1, bucketOf(low))
		}
	}
	for range rounds(100_000) {
		check(rng.Int64N(1 << (1 + rng.IntN(40))))
	}
	assert.Equal(t, histogramBuckets-1, bucketOf(longestRT-1))
	assert.Equal(t, histogramBuckets-1, bucketOf(math.MaxInt64))
	assert.Zero(t, bucketOf(-5))
}

// known bug 171. The percentiles of random traffic are those of the sorted list of what completed in the last
// minute, within 3.1 %.
func TestPercentilesAgainstAList(t *testing.T) {
	rng := random(t)
	for range rounds(20) {
		var h Histogram
		require.Zero(t, h.Percentiles(epoch))
		type event struct{ at, rt int64 }
		var events []event
		now := epoch - ms(rng.Int64N(100_000))
		for range 3000 {
			now += ms(rng.Int64N(100))
			if rng.IntN(500) == 0 {
				now += ms(rng.Int64N(100_000)) // nothing for a while
			}
			rt := int64(math.Exp(rng.NormFloat64()*2 + 14))
			h.Add(uint32(rng.IntN(16)), now, rt)
			events = append(events, event{now, rt})
			if rng.IntN(50) > 0 {
				continue
			}
			at := now + ms(rng.Int64N(5000))
			since := floor(at, histogramSliceWidth) - histogramSlices*histogramSliceWidth
			var sorted []int64
			for _, e := range events {
				if e.at >= since {
					sorted = append(sorted, e.rt)
				}
			}
			slices.Sort(sorted)
			p := h.Percentiles(at)
			require.EqualValues(t, len(sorted), p.Count)
			if len(sorted) == 0 {
				require.Zero(t, p)
				continue
			}
			for percent, told := range map[int]time.Duration{50: p.P50, 95: p.P95, 99: p.P99} {
				want := float64(sorted[(len(sorted)*percent+99)/100-1])
				require.InDelta(t, want, float64(told), 0.031*want, "p%d", percent)
			}
			now = at
		}
	}
}

// Many callers at once, and a reader: nothing is lost or counted twice, however slices turn.
func TestHistogramConserves(t *testing.T) {
	var h Histogram
	const callers = 8
	each := rounds(20_000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := int64(0)
		for range rounds(400) {
			n := h.Percentiles(epoch + ms(40_000)).Count
			assert.GreaterOrEqual(t, n, last)
			last = n
		}
	}()
	crowd(callers, func(g int) {
		for i := range each {
			h.Add(uint32(g), epoch+ms(int64(40_000*i/each)), int64(i))
		}
	})
	<-done
	assert.EqualValues(t, callers*each, h.Percentiles(epoch+ms(40_000)).Count)
}

// A word that overflows is no loss.
func TestHistogramOverflows(t *testing.T) {
	var h Histogram
	h.Add(0, epoch, 5)
	h.stripes[0].Load().counts[5].Store(math.MaxUint32)
	h.taken[5] = math.MaxUint32
	for range 10 {
		h.Add(0, epoch, 5)
	}
	assert.Equal(t, Percentiles{10, 5, 5, 5}, h.Percentiles(epoch))
	assert.Equal(t, Percentiles{10, 5, 5, 5}, h.Percentiles(epoch+ms(6000)))
}

// What a histogram takes is what its comment says, and it keeps no more after busy times.
func TestHistogramMemory(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(histogramStripe{}), uintptr(2400))
	size := func(h *Histogram) int {
		n := int(unsafe.Sizeof(*h)) + int(unsafe.Sizeof(*h.taken))
		for i := range h.stripes {
			if s := h.stripes[i].Load(); s != nil {
				n += int(unsafe.Sizeof(*s))
			}
		}
		for i := range h.slices {
			n += cap(h.slices[i].counts)
		}
		return n
	}
	rng := random(t)
	var usual, worst Histogram
	for now := epoch; now < epoch+ms(120_000); now += ms(5) {
		usual.Add(uint32(now/ms(5)%2), now, ms(1)+rng.Int64N(ms(99)))
	}
	assert.LessOrEqual(t, size(&usual), 12<<10)
	for now := epoch; now < epoch+ms(120_000); now += ms(5000) {
		for lane := range uint32(8) {
			for bucket := range histogramBuckets {
				worst.Add(lane, now, int64(valueOf(bucket)))
			}
			for bucket := range histogramBuckets {
				worst.stripes[lane].Load().counts[bucket].Add(1 << 25)
			}
		}
	}
	assert.LessOrEqual(t, size(&worst), 66<<10)
	for now := epoch + ms(120_000); now < epoch+ms(240_000); now += ms(1000) {
		worst.Add(0, now, 5)
	}
	assert.LessOrEqual(t, size(&worst), 23<<10)
}

func TestHistogramAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	var h Histogram
	now := epoch
	add := func() {
		now += ms(300)
		h.Add(1, now, now%1000)
		h.Percentiles(now)
	}
	for range 1000 {
		add()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, add))
}

func BenchmarkHistogram(b *testing.B) {
	var h Histogram
	rt := int64(0)
	for b.Loop() {
		rt += 37
		h.Add(1, epoch+rt, rt&(1<<24-1))
	}
}
