package stat

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func bucket(rt int64) int {
	class, step := bucketOf(rt)
	return class<<octaveBits + step
}

// timing returns new counters.
func timing(t testing.TB) *Counters { return newCounters(newLayout(t, time.Second, 2, 4)) }

// Each response time is reported within 3.1 %, and the buckets leave no gap between them.
func TestHistogramBuckets(t *testing.T) {
	rng := random(t)
	check := func(rt int64) {
		reported := float64(valueOf(bucket(rt)))
		require.LessOrEqual(t, math.Abs(reported-float64(rt)), 0.0304*float64(rt), "%d is reported as %f", rt, reported)
	}
	last := -1
	for rt := range int64(1 << 12) {
		check(rt)
		b := bucket(rt)
		require.True(t, b == last || b == last+1)
		last = b
	}
	for shift := 4; shift < 40; shift++ {
		for step := range int64(16) {
			low := (16 + step) << (shift - 4)
			check(low)
			require.Equal(t, bucket(low-1)+1, bucket(low))
		}
	}
	for range rounds(100_000) {
		check(rng.Int64N(1 << (1 + rng.IntN(40))))
	}
	assert.Equal(t, histogramBuckets-1, bucket(longestRT-1))
	assert.Equal(t, histogramBuckets-1, bucket(math.MaxInt64))
	assert.Zero(t, bucket(0))
}

// known bug 171: the percentiles of random traffic equal the percentiles of the sorted list of
// calls completed in the last minute, within 3.1 %.
func TestPercentilesAgainstAList(t *testing.T) {
	rng := random(t)
	for range rounds(20) {
		h := timing(t)
		sides := including(t, h, rng.IntN(2))
		require.Zero(t, h.Percentiles(epoch))
		type event struct{ at, rt int64 }
		var events []event
		now := epoch - ms(rng.Int64N(100_000))
		for range 3000 {
			now += ms(rng.Int64N(100))
			if rng.IntN(500) == 0 {
				now += ms(rng.Int64N(100_000)) // no calls for a while
			}
			rt := int64(math.Exp(rng.NormFloat64()*2 + 14))
			sides[rng.IntN(len(sides))].AddTimed(rng.Uint32(), now, 1, rt, false)
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
			for percent, reported := range map[int]time.Duration{50: p.P50, 95: p.P95, 99: p.P99} {
				want := float64(sorted[(len(sorted)*percent+99)/100-1])
				require.InDelta(t, want, float64(reported), 0.031*want, "p%d", percent)
			}
			now = at
		}
	}
}

// With many concurrent callers and a reader, nothing is lost or counted twice, regardless of when
// slices turn.
func TestHistogramConserves(t *testing.T) {
	h := timing(t)
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
			h.AddTimed(uint32(g), epoch+ms(int64(40_000*i/each)), 1, int64(i), false)
		}
	})
	<-done
	assert.EqualValues(t, callers*each, h.Percentiles(epoch+ms(40_000)).Count)
	assert.EqualValues(t, callers*each, h.Totals().Exited)
	assert.EqualValues(t, int64(callers)*int64(each)*int64(each-1)/2, h.Totals().RT)
}

// A histogram takes the memory that its comment states, keeps no more than that after busy times,
// and keeps nothing after a long time without calls.
func TestHistogramMemory(t *testing.T) {
	size := func(h *Counters) int {
		if h.times == nil {
			return 0
		}
		n := int(unsafe.Sizeof(*h.times))
		for i := range h.lanes {
			if l := h.lanes[i].Load(); l != nil && l.times.Load() != nil {
				n += int(unsafe.Sizeof(laneTimes{}))
				for j := range l.times.Load().octaves {
					if l.times.Load().octaves[j].Load() != nil {
						n += int(unsafe.Sizeof(octave{}))
					}
				}
			}
		}
		for i := range h.times.slices {
			n += cap(h.times.slices[i].counts)
		}
		return n
	}
	rng := random(t)
	usual, worst := timing(t), timing(t)
	for now := epoch; now < epoch+ms(120_000); now += ms(5) {
		usual.AddTimed(uint32(now/ms(5)%2), now, 1, ms(1)+rng.Int64N(ms(99)), false)
	}
	assert.LessOrEqual(t, size(usual), 8<<10)
	const lanes = 8
	require.Len(t, worst.lanes, lanes)
	for now := epoch; now < epoch+ms(120_000); now += ms(5000) {
		for lane := range uint32(lanes) {
			for bucket := range histogramBuckets {
				worst.AddTimed(lane, now, 1, int64(valueOf(bucket)), false)
			}
		}
		worst.gatherAll()
		for bucket := range histogramBuckets {
			worst.times.latest[bucket] += 1 << 28
		}
	}
	assert.LessOrEqual(t, size(worst), 48<<10+lanes*(5<<10+100))
	for now := epoch + ms(120_000); now < epoch+ms(240_000); now += ms(1000) {
		worst.AddTimed(0, now, 1, 5, false)
		worst.Second(now)
	}
	assert.LessOrEqual(t, size(worst), 11<<10)
	worst.Second(epoch + ms(310_000))
	assert.Zero(t, size(worst))
}

// Counters with timed calls can become idle, and Idle reports it.
func TestTimedCountersRest(t *testing.T) {
	c := timing(t)
	c.AddPass(0, epoch, 1)
	assert.False(t, c.Idle(epoch+ms(300_000)))
	c.AddTimed(0, epoch+ms(300_000), 1, ms(300_000), false)
	assert.False(t, c.Idle(epoch+ms(300_000)))
	assert.True(t, c.Idle(epoch+ms(600_000)))
	assert.Zero(t, c.Lanes())
	assert.Equal(t, time.Duration(ms(300_000)), c.Totals().RT)
}

func TestTimingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := timing(t)
	now := epoch
	add := func() {
		now += ms(300)
		h.AddTimed(1, now, 1, now%1000, false)
		h.Percentiles(now)
	}
	for range 1000 {
		add()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, add))
}

func BenchmarkTimed(b *testing.B) {
	h := timing(b)
	rt := int64(0)
	for b.Loop() {
		rt += 37
		h.AddTimed(1, epoch+rt, 1, rt&(1<<24-1), false)
	}
}
