package stat

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewView(t *testing.T) {
	usual := newLayout(t, time.Second, 2, 1)
	long := newLayout(t, 10*time.Second, 5, 1)
	for _, tt := range []struct {
		layout   *Layout
		interval time.Duration
		samples  int
		err      string
	}{
		{usual, time.Second, 2, ""},
		{usual, time.Second, 1, ""},
		{usual, 500 * time.Millisecond, 1, ""},
		{usual, time.Minute, 60, ""},
		{usual, time.Minute, 1, ""},
		{usual, 30 * time.Second, 10, ""},
		{long, 10 * time.Second, 5, ""},
		{long, 2 * time.Second, 1, ""},
		{long, 10 * time.Second, 10, ""}, // doesn't divide the minute
		{usual, time.Second, 0, "stat: a view of 0 samples: use 1 to 1440"},
		{usual, time.Hour, 1441, "stat: a view of 1441 samples: use 1 to 1440"},
		{usual, time.Second, 3, "stat: 3 samples don't divide a view of 1s"},
		{usual, -time.Second, 1, "stat: 1 samples don't divide a view of -1s"},
		{usual, 0, 1, "stat: 1 samples don't divide a view of 0s"},
		{usual, time.Second, 4, "stat: a view of 1s in 4 samples: the interval must divide 1s, and its samples of 250ms be a multiple of 500ms; or 1m0s, and a multiple of 1s"},
		{usual, 45 * time.Second, 45, "stat: a view of 45s in 45 samples: the interval must divide 1s, and its samples of 1s be a multiple of 500ms; or 1m0s, and a multiple of 1s"},
		{usual, 2 * time.Minute, 120, "stat: a view of 2m0s in 120 samples: the interval must divide 1s, and its samples of 1s be a multiple of 500ms; or 1m0s, and a multiple of 1s"},
	} {
		v, err := NewView(tt.layout, tt.interval, tt.samples)
		if tt.err != "" {
			require.EqualError(t, err, tt.err)
			assert.Zero(t, v.Samples())
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []any{tt.interval, tt.samples, tt.interval / time.Duration(tt.samples)}, []any{v.Interval(), v.Samples(), v.Width()})
	}
}

// Each view of random traffic equals the naive sum of a list of all events.
func TestViewAgainstAList(t *testing.T) {
	rng := random(t)
	for range rounds(40) {
		layout := newLayout(t, time.Second, 2, 2)
		if rng.IntN(2) == 0 {
			layout = newLayout(t, 4*time.Second, 4, 2)
		}
		c, part := newCounters(layout), newCounters(layout)
		require.True(t, c.Include(part))
		type event struct{ at, pass, rt int64 }
		var events []event
		now := epoch + rng.Int64N(ms(60_000))
		for range 400 {
			now += rng.Int64N(ms(400))
			e := event{now, 1 + rng.Int64N(3), rng.Int64N(ms(50))}
			on := c
			if rng.IntN(2) == 0 {
				on = part
			}
			lane := uint32(rng.IntN(4))
			on.AddPass(lane, e.at, e.pass)
			on.AddComplete(lane, e.at, e.pass, e.rt, false)
			if rng.IntN(20) == 0 {
				on.AddOccupied(lane, e.at, 0) // outside the lanes
			}
			events = append(events, e)
			if rng.IntN(8) > 0 {
				continue
			}
			for _, shape := range []Shape{
				{Interval: time.Second, Buckets: 1}, {Interval: layout.Interval(), Buckets: 2}, {Interval: time.Minute, Buckets: 60},
				{Interval: time.Minute, Buckets: 4}, {Interval: 20 * time.Second, Buckets: 10}, {Interval: 4 * time.Second, Buckets: 4},
			} {
				v, err := NewView(layout, shape.Interval, shape.Buckets)
				require.NoError(t, err)
				width := int64(v.Width())
				oldest, newest := v.Range(now)
				require.Equal(t, []int64{now - now%width, newest - oldest + width}, []int64{newest, int64(v.Interval())})
				want := make([]Counts, v.Samples())
				var sum Counts
				for _, e := range events {
					if e.at >= oldest {
						counts := Counts{Pass: e.pass, Complete: e.pass, Entered: 1, Exited: 1, RT: time.Duration(e.rt), minRT: e.rt + 1}
						want[(e.at-oldest)/width].Add(&counts)
						sum.Add(&counts)
					}
				}
				require.Equal(t, sum, v.Sum(c, now), "%v", shape)
				require.Equal(t, sum.Per(v.Interval()), v.Rates(c, now))
				all := v.Buckets(c, now, nil)
				require.Len(t, all, v.Samples())
				for i := range all {
					require.Equal(t, Bucket[Counts]{oldest + int64(i)*width, want[i]}, all[i], "%v", shape)
				}
				odd := func(start int64) bool { return start/width%2 == 1 }
				require.Equal(t, slices.DeleteFunc(slices.Clone(all), func(b Bucket[Counts]) bool { return !odd(b.Start) }), v.AppendBuckets([]Bucket[Counts]{}, c, now, odd))
				most := slices.MaxFunc(want, func(a, b Counts) int { return cmp.Compare(a.Pass, b.Pass) }).Pass
				require.Equal(t, most, v.Max(c, now, func(c Counts) int64 { return c.Pass }))
			}
		}
	}
}

// A caller with a later time has already counted: its count is in the newest bucket, so no sum
// misses it.
func TestViewOfALateReader(t *testing.T) {
	layout := newLayout(t, time.Second, 2, 1)
	c := newCounters(layout)
	c.AddPass(0, epoch+ms(2600), 5)
	for _, samples := range []int{60, 4} {
		v, err := NewView(layout, time.Minute, samples)
		require.NoError(t, err)
		buckets := v.Buckets(c, epoch+ms(100), nil)
		assert.EqualValues(t, 5, buckets[samples-1].Value.Pass)
	}
}

// The predicate may read the same counters.
func TestViewPredicateReads(t *testing.T) {
	layout := newLayout(t, time.Second, 2, 1)
	c := newCounters(layout)
	c.AddPass(0, epoch, 5)
	v, err := NewView(layout, time.Second, 2)
	require.NoError(t, err)
	busy := v.Buckets(c, epoch, func(start int64) bool { return start == epoch && v.Sum(c, epoch).Pass > 0 })
	require.Len(t, busy, 1)
	assert.EqualValues(t, 5, busy[0].Value.Pass)
}

func TestZeroView(t *testing.T) {
	var v View
	c := newCounters(newLayout(t, time.Second, 2, 1))
	c.AddPass(0, epoch, 1)
	from, to := v.Range(epoch)
	assert.Zero(t, from+to)
	assert.Zero(t, v.Sum(c, epoch))
	assert.Zero(t, v.Rates(c, epoch))
	assert.Zero(t, v.Max(c, epoch, func(c Counts) int64 { return c.Pass }))
	assert.Empty(t, v.Buckets(c, epoch, nil))
}

// A read allocates nothing and copies no ring.
func TestViewAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	layout := newLayout(t, time.Second, 2, 1)
	c := newCounters(layout)
	c.AddPass(0, epoch, 5)
	c.AddPass(0, epoch+ms(3000), 5)
	v, err := NewView(layout, time.Minute, 60)
	require.NoError(t, err)
	now := epoch + ms(3100)
	c.Second(now)
	buckets := make([]Bucket[Counts], 0, 60)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		v.Sum(c, now)
		v.Rates(c, now)
		v.Max(c, now, func(c Counts) int64 { return c.Pass })
		buckets = v.AppendBuckets(buckets[:0], c, now, nil)
	}))
}

func ExampleView() {
	layout, _ := NewLayout(time.Second, 2, 1)
	var c Counters
	c.Init(layout)
	now := time.Date(2026, 1, 2, 15, 0, 40, 0, time.UTC).UnixNano()
	c.AddPass(0, now-int64(25*time.Second), 30)
	c.AddPass(0, now, 12)

	halfMinutes, err := NewView(layout, time.Minute, 2)
	if err != nil {
		fmt.Println(err)
	}
	for _, b := range halfMinutes.Buckets(&c, now, nil) {
		fmt.Println(time.Unix(0, b.Start).UTC().Format(time.TimeOnly), b.Value.Pass)
	}
	// Output:
	// 15:00:00 30
	// 15:00:30 12
}
