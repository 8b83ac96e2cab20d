package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// A semaphore distinguishes the limits of its rule by the last 16 bits of their numbers. A call that
// was delayed with an old limit is checked against the current one, even if many limits of other
// rules have changed since.
// known bug 62
func TestLimitsOfOthersAreOthers(t *testing.T) {
	layout, err := stat.NewLayout(time.Second, 2, 1)
	require.NoError(t, err)
	r, err := Rule{Resource: "orders", Start: 10, Floor: 1, Ceiling: 20}.Normalized()
	require.NoError(t, err)
	var others table
	home, l := node.NewStatisticNode(layout), newLimit(others.nextID(), r)
	owner, _ := l.owners(false)
	g := home.NeedSemaphore(owner)
	l.adopt(r.terms(), home, owner)
	g.Acquire(0, 5)

	old := claim(l.word.Load(), 1) // its holder is held up
	for range 1<<16 - 2 {
		newLimit(others.nextID(), r)
	}
	l.mu.Lock()
	l.learner.level = 2
	l.enforce()
	l.mu.Unlock()

	got, _ := g.Join(0, old)
	assert.False(t, got, "%d units in flight, the limit is 2", g.InUse())
}
