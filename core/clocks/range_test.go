package clocks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A machine whose clock was never set may show a time before 1970. Even then the coarse clock shows
// its ticker's reading.
func TestCoarseClockBefore1970(t *testing.T) {
	c := NewCoarse()
	for _, read := range []int64{firstTime, -1, 0, 1, lastTime} {
		c.cached.Store(read)
		require.Equal(t, read, c.Now())
	}
	c.cached.Store(off)
	assert.NotEqual(t, int64(off), c.Now())
	require.NoError(t, c.Close())
}

func TestTimesOutOfRange(t *testing.T) {
	for year, want := range map[int]int64{-9999: firstTime, 1: firstTime, 1899: firstTime, 1900: firstTime, 2100: lastTime, 2101: lastTime, 9999: lastTime} {
		assert.Equal(t, want, inRangeTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)), "%d", year)
	}
	for at, want := range map[int64]int64{-1 << 63: firstTime, firstTime - 1: firstTime, 0: 0, lastTime: lastTime, 1<<63 - 1: lastTime} {
		assert.Equal(t, want, inRange(at))
	}
}
