package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
)

// isolated lets the store be away, and the member notice.
func (c *costing) isolated(i int) {
	c.store.away = true
	for range 10 {
		c.takes(i, 900)
	}
	require.True(c, c.w[i].Stats().Unreachable)
}

// returns lets the store be back, and the member charge what it has admitted.
func (c *costing) returns(i int) {
	c.store.away = false
	c.clock.Advance(10 * time.Second)
	for range 5 {
		c.takes(i, 1)
		c.clock.Advance(100 * time.Millisecond)
	}
	require.False(c, c.w[i].Stats().Unreachable)
}

// room takes what is free for a member, and returns how much it was.
func (c *costing) room(i int) (n int64) {
	for step := int64(512); step > 0; step /= 2 {
		for {
			if _, ok := c.takes(i, step); !ok {
				break
			}
			n += step
		}
		c.clock.Advance(1200 * time.Millisecond)
	}
	return n
}

// Units that the fallback granted leave the bucket in which they would be charged: the other calls'
// units stay charged as long as they count.
// known bug 271
func TestRefundInAnOutage(t *testing.T) {
	c := newCosting(t, 1000, cluster.Local)
	c.clock.Advance(2 * time.Second)
	c.isolated(0)
	first, ok := c.takes(0, 200)
	require.True(t, ok)
	c.clock.Advance(40 * time.Second)
	_, ok = c.takes(0, 200)
	require.True(t, ok)
	c.w[0].Cancel(first, 200)
	c.returns(0)
	c.clock.Advance(20 * time.Second) // the bucket of the first has gone
	assert.LessOrEqual(t, c.room(1), int64(800))
}

// Nor do units of an earlier outage, which the store counts, go from what a later one owes.
// known bug 271
func TestRefundFromAnEarlierOutage(t *testing.T) {
	c := newCosting(t, 1000, cluster.Local)
	c.clock.Advance(2 * time.Second)
	c.isolated(0)
	first, ok := c.takes(0, 200)
	require.True(t, ok)
	c.returns(0)
	c.clock.Advance(20 * time.Second)
	c.isolated(0)
	_, ok = c.takes(0, 200)
	require.True(t, ok)
	c.w[0].Cancel(first, 200)
	c.returns(0)
	c.clock.Advance(30 * time.Second)
	assert.LessOrEqual(t, c.room(1), int64(800))
}
