package meter

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crew is a group of calls that join the queue of one semaphore; it records wake-ups.
type crew struct {
	t     *testing.T
	g     Semaphore
	limit int64
	woken []string
}

// joins makes a call ask for units. It returns the call's place, or nil if the call got its units
// immediately.
func (c *crew) joins(name string, units int64, first bool) *Waiter {
	c.t.Helper()
	got, w := c.g.Join(0, Claim{Units: units, First: first, Queue: 10, Limit: c.limit, Revision: 1})
	if got {
		return nil
	}
	require.NotNil(c.t, w, name)
	w.Attend(func() { c.woken = append(c.woken, name) })
	return w
}

func (c *crew) refuses(claim Claim) {
	c.t.Helper()
	got, w := c.g.Join(0, claim)
	assert.False(c.t, got)
	assert.Nil(c.t, w)
	assert.False(c.t, c.g.MayJoin(claim))
}

func TestQueueIsServedInOrder(t *testing.T) {
	c := &crew{t: t, limit: 2}
	require.Nil(t, c.joins("a", 2, false))
	c.joins("b", 1, false)
	c.joins("c", 1, false)
	c.joins("first", 1, true)
	c.joins("d", 1, false)
	c.joins("second", 1, true)
	assert.EqualValues(t, 5, c.g.Queued())
	for _, want := range [][]string{
		{"first", "b"},
		{"first", "b", "second"},
		{"first", "b", "second", "c"},
		{"first", "b", "second", "c", "d"},
	} {
		n := int64(1)
		if len(c.woken) == 0 {
			n = 2
		}
		c.g.Release(0, n)
		assert.Equal(t, want, c.woken)
		assert.EqualValues(t, 2, c.g.InUse())
	}
	c.g.Release(0, 2)
	assert.Zero(t, c.g.InUse())
}

// No small call jumps ahead of a large one, neither from behind nor on arrival.
func TestBatchInTheQueueIsNotOvertaken(t *testing.T) {
	c := &crew{t: t, limit: 5}
	require.Nil(t, c.joins("a", 3, false))
	c.joins("batch", 4, false)
	c.joins("small", 1, false)
	assert.Empty(t, c.woken)
	c.refuses(Claim{Units: 1, Limit: 5, Revision: 1})
	require.Nil(t, c.joins("first", 1, true), "a call that is placed before the batch and fits runs")
	c.g.Release(0, 1)
	assert.Empty(t, c.woken)
	c.g.Release(0, 3)
	assert.Equal(t, []string{"batch", "small"}, c.woken)
}

// At most as many units jump ahead of a large call as it asks for, including units taken at once,
// and a call doesn't pay for the same prioritized call twice. known bug 139
func TestQueueIsOvertakenByAsMuchAsItAsksFor(t *testing.T) {
	c := &crew{t: t, limit: 5}
	require.Nil(t, c.joins("a", 3, false))
	c.joins("batch", 4, false)
	for range 4 {
		require.Nil(t, c.joins("first", 1, true))
		c.g.Release(0, 1)
	}
	waits := c.joins("too many", 1, true)
	require.NotNil(t, waits)
	c.refuses(Claim{Units: 1, First: true, Queue: 2, Limit: 5, Revision: 1})
	c.g.Release(0, 3)
	assert.Equal(t, []string{"batch", "too many"}, c.woken)
	waits.Leave()
	c.joins("b", 4, false)
	require.Nil(t, c.joins("first", 1, true))
	c.g.Release(0, 5)
	assert.Equal(t, []string{"batch", "too many", "b"}, c.woken)
}

// A call that could never fit is rejected, and so is one that finds the queue full. known bug 34
func TestNobodyPaysForOneThatLeftTheLine(t *testing.T) {
	c := &crew{t: t, limit: 3}
	require.Nil(t, c.joins("holds", 3, false))
	batch := c.joins("batch", 3, false)
	c.joins("first", 1, true)
	c.joins("second", 1, true)
	last := c.joins("last", 1, true)
	batch.Leave()
	c.joins("since", 1, false)
	last.Leave()
	c.joins("overtakes", 1, true)
	c.g.Release(0, 3)
	c.g.Release(0, 3)
	assert.Equal(t, []string{"first", "second", "overtakes", "since"}, c.woken)
}

func TestQueueRefuses(t *testing.T) {
	c := &crew{t: t, limit: 2}
	require.Nil(t, c.joins("a", 1, false))
	for _, units := range []int64{3, 1<<32 - 1, 1 << 32, math.MaxInt64} {
		c.refuses(Claim{Units: units, Queue: 10, Limit: 2, Revision: 1})
		c.refuses(Claim{Units: units, Limit: 2, Revision: 1})
		c.refuses(Claim{Units: units, First: true, Queue: 10, Limit: 2, Revision: 1})
	}
	c.refuses(Claim{Units: 1, Queue: 10, Limit: 0, Revision: 1})
	c.joins("b", 2, false)
	c.refuses(Claim{Units: 2, Queue: 1, Limit: 2, Revision: 1})
	assert.EqualValues(t, 1, c.g.InUse())
	assert.EqualValues(t, 1, c.g.Queued())
	assert.EqualValues(t, 2, c.g.UnitsQueued())
}

// known bug 58: a place that is given up delays no other, and units that are given up are granted
// to the next call.
func TestLeavingTheLine(t *testing.T) {
	c := &crew{t: t, limit: 2}
	require.Nil(t, c.joins("a", 1, false))
	batch := c.joins("batch", 2, false)
	middle := c.joins("middle", 1, false)
	last := c.joins("last", 1, false)
	middle.Leave()
	middle.Leave()
	assert.Empty(t, c.woken)
	batch.Leave()
	assert.Equal(t, []string{"last"}, c.woken)
	assert.True(t, last.Granted())
	next := c.joins("next", 1, false)
	last.Leave() // it had been granted units: they pass to the next
	assert.Equal(t, []string{"last", "next"}, c.woken)
	last.Leave()
	assert.EqualValues(t, 2, c.g.InUse(), "a second Leave does nothing")
	next.Leave()
	c.g.Release(0, 1)
	assert.Zero(t, c.g.InUse())
	assert.Zero(t, c.g.Queued())
}

func TestLimitOfAQueueChanges(t *testing.T) {
	c := &crew{t: t, limit: 2}
	require.Nil(t, c.joins("a", 2, false))
	c.joins("b", 1, false)
	c.joins("batch", 2, false)
	c.joins("c", 1, false)
	c.g.SetLimit(3, 3)
	assert.Equal(t, []string{"b"}, c.woken, "a higher limit lets calls that fit run")
	c.g.SetLimit(2, 1)
	assert.Equal(t, []string{"b"}, c.woken, "older rules change nothing")
	c.g.SetLimit(4, 1)
	assert.Equal(t, []string{"b", "batch"}, c.woken, "a call that can no longer fit has lost its place")
	assert.EqualValues(t, 3, c.g.InUse(), "calls that run keep their units")
	c.g.Release(0, 2)
	assert.Equal(t, []string{"b", "batch"}, c.woken)
	c.joins("d", 1, false) // under the rules of revision 1, limit 2
	assert.EqualValues(t, 2, c.g.Queued())
	c.g.SetLimit(5, Open)
	assert.Equal(t, []string{"b", "batch", "c", "d"}, c.woken, "without a limit all run")
	c.g.Release(0, 3)
	assert.Zero(t, c.g.InUse())
}

func TestExpiredPlaces(t *testing.T) {
	var g Semaphore
	claim := Claim{Units: 1, Queue: 10, Limit: 1, Revision: 1}
	got, _ := g.Join(0, claim)
	require.True(t, got)
	var places []*Waiter
	for until := range int64(4) { // 0 never expires
		claim.Until = until
		_, w := g.Join(0, claim)
		places = append(places, w)
	}
	assert.Zero(t, g.Expire(1))
	assert.Equal(t, 2, g.Expire(3))
	g.Release(0, 1)
	assert.True(t, places[0].Granted())
	for _, w := range places {
		w.Leave()
	}
	assert.Zero(t, g.InUse())
	assert.Zero(t, g.Queued())
}

// Units that no call in flight still holds are granted to the queue too.
func TestUnseenUnitsGoToTheLine(t *testing.T) {
	for name, free := range map[string]func(*Semaphore){
		"released": func(g *Semaphore) { g.ReleaseUnseen(1) },
		"settled":  func(g *Semaphore) { g.Settle(0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &crew{t: t, limit: 1}
			c.g.Begin()
			c.g.Settle(0) // precedes the seed, and must not end the wait for it
			assert.True(t, c.g.Settling())
			c.g.Seed(1)
			w := c.joins("a", 1, false)
			free(&c.g)
			assert.Equal(t, []string{"a"}, c.woken)
			w.Leave()
			assert.Zero(t, c.g.InUse())
		})
	}
}

// A woken call may use the semaphore in any way, including leaving immediately, which wakes the
// next. known bug 60
func TestQueueWakesUnderNoLock(t *testing.T) {
	for name, free := range map[string]func(*Semaphore){
		"release":   func(g *Semaphore) { g.Release(0, 1) },
		"limit":     func(g *Semaphore) { g.SetLimit(2, 2) },
		"new limit": func(g *Semaphore) { g.Join(0, Claim{Units: 1, Queue: 9, Limit: 2, Revision: 2}) },
		"expire":    func(g *Semaphore) { g.Expire(8) },
	} {
		t.Run(name, func(t *testing.T) {
			var g Semaphore
			claim := Claim{Units: 1, Queue: 9, Limit: 1, Revision: 1, Until: 7}
			g.Join(0, claim)
			woken := 0
			for range 3 {
				_, w := g.Join(0, claim)
				w.Attend(func() {
					woken++
					w.Granted()
					w.Leave()
				})
			}
			free(&g)
			assert.Equal(t, 3, woken)
			assert.Zero(t, g.Queued())
		})
	}
}
