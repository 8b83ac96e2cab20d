package flow

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Found by a schedule: two calls of no cost got the same slot, and the first to give
// its own back took the other's away.
func TestNoCallIsFree(t *testing.T) {
	assert.Equal(t, slot{frac: 1}, cost(1, 0))
	assert.Equal(t, slot{frac: 1}, cost(1, 1e-300))
	assert.Equal(t, slot{ns: 1}, cost(1, 1))

	q := newThrottle()
	_, first, _, _ := q.take(0, cost(1, 0), 0)
	_, second, _, ok := q.take(0, cost(1, 0), 0)
	assert.True(t, ok)
	assert.NotEqual(t, first, second)
}
