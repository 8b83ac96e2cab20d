package stat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Counters can count a million of the largest calls, 2^40 units, whether the calls arrive at once
// or over an hour. known bug 48
func TestTwoToTheFortyUnits(t *testing.T) {
	calls := rounds(1 << 20) // fewer with -short, but still beyond 32 bits
	units := int64(calls) * MaxUnits
	for _, apart := range []time.Duration{0, time.Hour / time.Duration(calls)} {
		w := newWindow(t, 24*time.Hour, 24, false)
		c := newCounters(newLayout(t, time.Second, 2, 2))
		now := epoch
		for i := range calls {
			now = epoch + int64(i)*int64(apart)
			_, ok := w.TryAdd(0, now, MaxUnits, units)
			require.True(t, ok, "call %d", i)
			c.AddPass(uint32(i), now, MaxUnits)
			c.AddComplete(uint32(i), now, MaxUnits, int64(time.Hour), false)
		}
		_, ok := w.TryAdd(0, now, 1, units)
		require.False(t, ok)
		require.Equal(t, units, w.Sum(now))
		totals := c.Totals()
		require.Equal(t, []int64{units, units, int64(calls), int64(calls)}, []int64{totals.Pass, totals.Complete, totals.Entered, totals.Exited})
		require.Equal(t, time.Duration(calls)*time.Hour, totals.RT)
		if apart == 0 {
			require.Equal(t, units, c.Minute(now).Pass)
		}
	}
}
