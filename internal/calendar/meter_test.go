package calendar

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/spec"
)

const day = int64(24 * time.Hour)

func TestMeter(t *testing.T) {
	c, now := of(t, spec.PerDay, "", ""), 100*day+day/2
	var m Meter
	take := func(n, limit int64) (period int64) {
		t.Helper()
		period, ok := m.Take(c, now, n, limit)
		require.True(t, ok)
		return period
	}
	assert.True(t, m.Idle(now))
	first := take(3, 5)
	_, ok := m.Take(c, now, 3, 5)
	assert.False(t, ok, "3 of 5 are used")
	wait, known := m.RetryAfter(c, now, 3, 5)
	assert.Equal(t, time.Duration(day/2), wait)
	assert.True(t, known)
	_, known = m.RetryAfter(c, now, 6, 5)
	assert.False(t, known, "more than the limit")
	take(3, 6) // a raised limit frees room at once
	assert.Zero(t, m.Charge(first, 4, 1000))
	assert.Equal(t, int64(10), m.Used(c, now))
	assert.Equal(t, int64(3), m.Charge(first, 5, 12), "2 of 5 within the most")
	m.GiveBack(first, 12)
	assert.Zero(t, m.Used(c, now))
	assert.True(t, m.Idle(now))

	take(4, 5)
	now += day
	assert.True(t, m.Idle(now))
	assert.Zero(t, m.Used(c, now))
	second := take(1, 5)
	m.GiveBack(first, 4) // of the day before
	assert.Zero(t, m.Charge(first, 4, 1000))
	assert.Equal(t, int64(1), m.Used(c, now))
	assert.NotEqual(t, first, second)
}

// A period once left isn't entered again: a clock that goes back gains nothing.
func TestAMeterGoesForward(t *testing.T) {
	c := of(t, spec.PerDay, "", "")
	rng := rand.New(rand.NewPCG(1, 2))
	var m Meter
	passed, latest := map[int64]int64{}, int64(0)
	for range 10_000 {
		now := 100 * day
		if begun, ok := m.Begun(); ok {
			now = begun + rng.Int64N(10*day) - 8*day // it is mostly late
		}
		if _, ok := m.Take(c, now, 1, 5); ok {
			begun, _ := m.Begun()
			require.GreaterOrEqual(t, begun, latest)
			latest = begun
			passed[begun]++
		}
	}
	for begun, n := range passed {
		assert.LessOrEqual(t, n, int64(5), begun)
	}
	assert.Greater(t, len(passed), 10)
}

// Units that are used stay used in another calendar, until its first boundary.
func TestAMeterFollowsAnotherCalendar(t *testing.T) {
	utc, tokyo, month := of(t, spec.PerDay, "", ""), of(t, spec.PerDay, "Asia/Tokyo", ""), of(t, spec.PerMonth, "", "")
	now := 100*day + day/2
	var m Meter
	m.Follow(tokyo, now)
	assert.True(t, m.Idle(now), "it has not begun")
	period, _ := m.Take(utc, now, 3, 5)

	m.Follow(tokyo, now)
	s, left := m.Until(tokyo, now)
	assert.Equal(t, 3*time.Hour, left, "midnight in Tokyo is 15:00 UTC")
	assert.Equal(t, 24*time.Hour, s.Length())
	assert.Equal(t, int64(3), m.Used(tokyo, now))
	m.GiveBack(period, 1)
	assert.Equal(t, int64(2), m.Used(tokyo, now), "the call entered in this period")

	m.Follow(month, now)
	assert.Equal(t, int64(2), m.Used(month, now+day))
	now += 40 * day
	m.Follow(utc, now)
	assert.Zero(t, m.Used(utc, now), "the month is over")
	_, left = m.Until(utc, now)
	assert.Equal(t, 12*time.Hour, left)
}

// A settlement that comes after the calendar changed there and back isn't taken for one of the
// current period, although that starts at the same time.
func TestALateSettlementOfAnEarlierCalendar(t *testing.T) {
	daily, month := of(t, spec.PerDay, "", ""), of(t, spec.PerMonth, "", "")
	now := 100*day + day/2
	var m Meter
	first, _ := m.Take(month, now, 3, 5)
	m.Follow(daily, now)
	now += day
	m.At(daily, now)
	now += day
	m.Follow(month, now)
	second, ok := m.Take(month, now, 3, 5)
	require.True(t, ok)
	assert.Greater(t, second, first)
	m.GiveBack(first, 3)
	m.Charge(first, 2, 100)
	assert.Equal(t, int64(3), m.Used(month, now))
}
