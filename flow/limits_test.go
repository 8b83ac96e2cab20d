package flow

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// A bucket of warm-up tokens holds from none to all that fit, whatever the rate, what
// passed, and the pause: up to ten years. museum 37, 42, 50
func TestWarmUpTokensStayInTheirBucket(t *testing.T) {
	layout, err := stat.NewLayout(time.Second, 2, 1)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(37, 42))
	pick := func(all ...float64) float64 { return all[r.IntN(len(all))] }
	for range 2000 {
		rule, err := Rule{
			Resource:     "orders",
			Threshold:    pick(0.001, 0.5, 1, 7, 100, 12345, 1e9, 1e12, 1e15),
			WarmUpPeriod: time.Duration(pick(1e9, 10e9, 86400e9)),
			ColdFactor:   int(pick(2, 3, 1000)),
			Behavior:     WarmUp,
		}.Normalized(3)
		require.NoError(t, err)
		w := newWarmUp(rule)
		n := node.NewStatisticNode(layout)
		now := int64(1_700_000_000_000_000_000)
		for range 10 {
			w.at(now, n)
			require.GreaterOrEqual(t, w.stored, int64(0), "%+v", rule)
			require.LessOrEqual(t, w.stored, w.full, "%+v", rule)
			for range r.IntN(5) {
				n.AddPass(0, now, 1+r.Int64N(stat.MaxUnits))
			}
			now += int64(time.Second)
			if r.IntN(3) == 0 {
				now += r.Int64N(int64(10 * 365 * 24 * time.Hour))
			}
		}
		// After a pause of ten years it is as cold as at the start; right at the warning
		// line nothing is gained, see warmUp.
		atLine := w.stored == w.warning
		now += int64(10 * 365 * 24 * time.Hour)
		w.at(now, n)
		if rule.Threshold >= 1 && !atLine {
			require.InDelta(t, w.full, w.stored, 1e-9*float64(w.full), "%+v", rule)
		}
	}
}

// Nobody is told to wait for less than nothing, or for longer than the longest wait,
// whatever the times, also those that lie before the last slot. museum 38
func TestThrottleWaitsAreInRange(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 0))
	q := newThrottle()
	now := int64(1_700_000_000_000_000_000)
	for range 20_000 {
		c := cost(1+r.Int64N(stat.MaxUnits), r.ExpFloat64()*1e6)
		longest := time.Duration(r.Int64N(int64(MaxMaxWait)))
		at := now + r.Int64N(int64(time.Hour)) - int64(30*time.Minute)
		_, fits := q.fits(at, c, longest)
		wait, _, _, ok := q.take(at, c, longest)
		require.Equal(t, fits, ok)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		if ok {
			require.LessOrEqual(t, wait, longest)
		}
		now += r.Int64N(int64(time.Minute))
	}
}
