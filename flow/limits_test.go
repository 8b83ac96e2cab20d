package flow

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// The warm-up tokens stay between zero and a full bucket for any rate, any calls that passed, and
// any pause up to ten years.
// known bug 37, 42, 50
func TestWarmUpTokensStayInTheirBucket(t *testing.T) {
	layout, err := stat.NewLayout(time.Second, 2, 1)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(37, 42))
	pick := func(all ...float64) float64 { return all[r.IntN(len(all))] }
	for range 2000 {
		rule, err := Rule{
			Resource:     "orders",
			Threshold:    pick(5e-324, 1e-300, 0.001, 0.5, 1, 7, 100, 12345, 1e9, 1e12, 1e15),
			WarmUpPeriod: time.Duration(pick(1e9, 10e9, 86400e9)),
			ColdFactor:   int(pick(2, 3, 1000)),
			Behavior:     WarmUp,
		}.Normalized(3)
		require.NoError(t, err)
		w := newWarmUp(rule)
		n := node.NewStatisticNode(layout)
		now := int64(1_700_000_000_000_000_000)
		for range 10 {
			rate := w.at(now, n)
			require.True(t, rate >= w.floor && rate <= w.perSecond, "%v of %+v", rate, rule)
			require.GreaterOrEqual(t, w.stored, 0.0, "%+v", rule)
			require.LessOrEqual(t, w.stored, w.full, "%+v", rule)
			for range r.IntN(5) {
				n.AddPass(0, now, 1+r.Int64N(stat.MaxUnits))
			}
			now += int64(time.Second)
			if r.IntN(3) == 0 {
				now += r.Int64N(int64(10 * 365 * 24 * time.Hour))
			}
		}
		// After a pause of ten years the resource is as cold as at the start; exactly at the warning
		// line it gains nothing; see warmUp.
		w.at(now, n) // settles the calls from before the pause
		atLine := w.rounds && w.stored == w.warning
		now += int64(10 * 365 * 24 * time.Hour)
		w.at(now, n)
		if !atLine && rule.Threshold > 1e-9 { // otherwise even ten years are no long pause
			require.InDelta(t, w.full, w.stored, 1e-9*w.full, "%+v", rule)
		}
	}
}
