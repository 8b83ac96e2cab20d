package stat

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	var tally Tally
	require.Zero(t, tally.Load())
	for _, lane := range []uint32{0, 1, tallyCells, math.MaxUint32, 1 << 31} {
		tally.Add(lane, 2)
	}
	require.EqualValues(t, 10, tally.Load())
	require.EqualValues(t, 64, unsafe.Sizeof(tallyCell{}))
	require.Zero(t, testing.AllocsPerRun(100, func() { tally.Add(3, 1) }))
}

// No count is lost, and successive reads never decrease.
func TestTallyUnderACrowd(t *testing.T) {
	var tally Tally
	var done atomic.Bool
	n := rounds(100_000)
	var reader sync.WaitGroup
	reader.Go(func() {
		for last := int64(0); !done.Load(); {
			next := tally.Load()
			if next < last {
				t.Errorf("decreased from %d to %d", last, next)
				return
			}
			last = next
		}
	})
	crowd(8, func(g int) {
		for range n {
			tally.Add(uint32(g*3), 1)
		}
	})
	done.Store(true)
	reader.Wait()
	require.EqualValues(t, 8*n, tally.Load())
}
