package meter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/stat"
)

// A semaphore can count a million of the largest calls in flight, which take 2^40 units. known bug
// 48
func TestTwoToTheFortyUnitsInFlight(t *testing.T) {
	calls := rounds(1 << 20) // fewer with -short, but still beyond 32 bits
	units := int64(calls) * stat.MaxUnits
	g := new(Semaphore)
	for i := range calls {
		require.True(t, g.TryAcquire(0, stat.MaxUnits, units), "call %d", i)
	}
	require.False(t, g.TryAcquire(0, 1, units))
	require.Equal(t, units, g.InUse())
}
