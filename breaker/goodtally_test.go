package breaker

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Successful calls of a closed breaker take no lock, except the first of each bucket and the calls
// that may trip it. That holds even if others fail now and then, if stats are read, after the rule
// changed, and after the breaker closed again.
func TestGoodCallsTakeNoLock(t *testing.T) {
	r, err := Rule{ID: "b", Resource: "orders", Threshold: 0.5}.Normalized()
	require.NoError(t, err)
	m, now := newMachine(&terms{Rule: r}), int64(time.Hour)
	quick := func() bool {
		_, number := m.state()
		ok := m.countGood(number, now, End{})
		if !ok {
			m.complete(number, now, End{})
		}
		now++
		return ok
	}
	bad := func() { // and nothing trips
		_, number := m.state()
		require.Zero(t, m.complete(number, now, End{Failed: true}))
	}
	isClosed := func() {
		assert.False(t, quick(), "the first of a bucket")
		bad()
		for range 3 {
			assert.True(t, quick(), "one bad call of five trips nothing")
		}
		bad()
		assert.True(t, quick())
		m.status(now)
		assert.True(t, quick())
	}
	isClosed()
	for range 3 {
		now += int64(m.results.ring.Width())
		assert.False(t, quick(), "the first of a bucket")
		assert.True(t, quick())
	}
	m.adopt(&terms{Rule: r}, now)
	assert.True(t, quick(), "the rule was loaded anew")
	m.force(ForceOpen, now)
	assert.False(t, quick())
	m.force(ForceClosed, now)
	m.force(NotForced, now)
	isClosed()
}

// A full tally, and one whose times are too far back, leave calls to the lock, and nothing is lost.
func TestFullGoodTally(t *testing.T) {
	m := newMachine(&terms{Rule: Rule{Threshold: 0.5, MinCalls: 5, Interval: time.Hour, Buckets: 1}})
	const number = 1
	good := func(now int64) bool { return m.countGood(number, now, End{}) }
	calls := func() int64 { return m.status(0).Calls }
	assert.False(t, good(0), "there is no tally before the first call")
	m.complete(number, 0, End{})

	first := m.tally.Load()
	const most = full >> timeBits
	first.word.Store(full - 1<<timeBits)
	assert.True(t, good(1), "one more fits")
	assert.False(t, good(0))
	assert.Equal(t, int64(1+most), calls())
	assert.Equal(t, int64(1), m.latest)

	assert.True(t, good(mostTime))
	assert.False(t, good(mostTime+1), "more than 68 s")
	assert.Same(t, first, m.tally.Load())
	m.complete(number, mostTime+1, End{})
	assert.True(t, good(2*mostTime), "there is another one")
	assert.True(t, good(5), "who is late counts")
	assert.Equal(t, int64(1+most+4), calls())
	assert.Equal(t, int64(2*mostTime), m.latest)
}

// Tallies are next to each other on the heap, one for each breaker, and all calls of a resource
// write to its tally.
func TestGoodTallyFillsACacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		assert.Equal(t, uintptr(64), unsafe.Sizeof(goodTally{}))
	}
}
