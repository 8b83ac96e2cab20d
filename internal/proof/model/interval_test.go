package model

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/stat"
)

// grant is a number of admitted units, with the time at which they may run.
type grant struct{ at, n, bucket int64 }

// most returns the most units in any real interval of that length, ends included. Only an interval
// that begins with a grant can be the fullest.
func most(grants []grant, length int64) (most int64) {
	sum, to := int64(0), 0
	for _, first := range grants {
		for ; to < len(grants) && grants[to].at <= first.at+length; to++ {
			sum += grants[to].n
		}
		most = max(most, sum)
		sum -= first.n
	}
	return most
}

// known bug 9, 29: a plain window of n buckets of width L sees at most its limit in every real
// interval of (n-1)·L and at most twice the limit in every interval of n·L; a strict window sees at
// most the limit in every interval of n·L. The test checks every interval of random histories with
// callers who are late, borrow, and return units.
func TestIntervals(t *testing.T) {
	d := &drawer{Rand: chance.Source(t)}
	intervals := int64(0)
	for range figure.Size(100, 3000, 40_000, 1_000_000) {
		buckets := 1 + d.IntN(10)
		shape := stat.Shape{Interval: time.Duration(buckets) * pick(d, 10*ms, 100*ms, 500*ms), Buckets: buckets, Strict: d.often(50)}
		limit := 1 + d.Int64N(8)
		grants := grantsOf(t, d, shape, limit)
		intervals += int64(len(grants))

		length, width := int64(shape.Interval), int64(shape.Width())
		if shape.Strict {
			if n := most(grants, length); n > limit {
				t.Fatalf("%d units in %v, the limit is %d: %+v", n, shape.Interval, limit, grants)
			}
			continue
		}
		if n := most(grants, length-width); n > limit {
			t.Fatalf("%d units in %v, the limit is %d: %+v", n, shape.Interval-shape.Width(), limit, grants)
		}
		if n := most(grants, length); n > 2*limit {
			t.Fatalf("%d units in %v, the limit is %d: %+v", n, shape.Interval, limit, grants)
		}
	}
	figure.Report(t, figure.Figure{Name: "real intervals over their bound", N: intervals, Seed: *chance.Seed})
}

// grantsOf sends callers to a window and returns the grants, by time.
func grantsOf(t *testing.T, d *drawer, shape stat.Shape, limit int64) (grants []grant) {
	w, err := stat.NewWindow(shape)
	if err != nil {
		t.Fatal(err)
	}
	width := int64(shape.Width())
	now, newest := d.Int64N(4*width+1)-2*width, int64(allTime)
	for range 20 + d.IntN(100) {
		if d.often(50) {
			now += d.Int64N(int64(shape.Interval) + 1)
		} else {
			now += pick(d, 0, 0, 1, width/2, width-1, width, width+1)
		}
		seen := now - pick(d, 0, 0, 0, 1, width, 2*int64(shape.Interval))
		n := 1 + d.Int64N(min(3, limit))
		what := pick(d, "add", "add", "add", "borrow", "cancel")
		if what != "cancel" {
			newest = max(newest, seen)
		}
		switch {
		case what == "add":
			if bucket, ok := w.TryAdd(0, seen, n, limit); ok {
				grants = append(grants, grant{newest, n, int64(bucket)}) // a late call counts at the newest time
			}
		case what == "borrow":
			if _, bucket, ok := w.TryBorrow(seen, n, limit, shape.Interval); ok {
				grants = append(grants, grant{int64(bucket) * width, n, int64(bucket)})
			}
		case what == "cancel" && len(grants) > 0:
			i := d.IntN(len(grants))
			if grants[i].at+int64(shape.Interval) > newest { // the history has not ended
				w.Cancel(stat.Receipt(grants[i].bucket), grants[i].n)
				grants = slices.Delete(grants, i, i+1)
			}
		}
	}
	slices.SortFunc(grants, func(a, b grant) int { return int(min(1, max(-1, a.at-b.at))) })
	return grants
}

// The bounds are tight: a plain window does admit twice the limit in n·L, and a strict one refuses
// nothing after (n+1)·L.
func TestIntervalBoundsAreTight(t *testing.T) {
	for _, shape := range []stat.Shape{{Interval: time.Second, Buckets: 2}, {Interval: time.Second, Buckets: 10}, {Interval: time.Second, Buckets: 10, Strict: true}} {
		w, err := stat.NewWindow(shape)
		require.NoError(t, err)
		var grants []grant
		for now := int64(shape.Width()) - 1; now < int64(4*time.Second); now++ {
			if bucket, ok := w.TryAdd(0, now, 10, 10); ok {
				grants = append(grants, grant{now, 10, int64(bucket)})
				now = (int64(bucket) + 1) * int64(shape.Width()) // to the next edge
			}
			now += int64(shape.Width())/2 - 1
		}
		length, width := int64(shape.Interval), int64(shape.Width())
		if shape.Strict {
			assert.EqualValues(t, 10, most(grants, length))
			assert.EqualValues(t, 20, most(grants, length+width))
		} else {
			assert.EqualValues(t, 10, most(grants, length-width))
			assert.EqualValues(t, 20, most(grants, length))
		}
	}
}
