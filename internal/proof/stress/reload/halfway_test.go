package reload

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
)

// If the user's clock or machine panics or ends the goroutine during a load, at any of its calls,
// the previous rules stay in effect as if nobody had tried, and everything continues. So the test
// does everything twice, once with the accident and once without the load. known bug 73
func TestAccidentInALoad(t *testing.T) {
	set := parsed(t, after)
	for way, accident := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, seed := range []uint64{*seed, *seed + 1} {
			points, traces := 0, 0
			for loaded := false; !loaded; points++ {
				name := fmt.Sprintf("%s, call %d, -seed=%d", way, points+1, seed)
				a, b := newLife(t, seed, accident), newLife(t, seed, accident)
				// Both continue, and end up in the same state.
				live := func(steps int) bool {
					a.live(steps)
					b.live(steps)
					return assert.Equal(t, a.state(), b.state(), name)
				}
				same := live(120)
				b.from.calls = points + 1
				if loaded = b.attempt(set); loaded {
					b.from.calls = 0
					require.NoError(t, a.LoadRules(set))
				}
				same = live(0) && live(60) && same
				require.NoError(t, a.LoadRules(set), name)
				require.NoError(t, b.LoadRules(set), name)
				same = live(120) && assert.Equal(t, a.story, b.story, name) && same
				a.end()
				b.end()
				if !same {
					traces++
				}
			}
			assert.Equal(t, 3, points, "a load should read the clock while it can still fail, and once more")
			figure.Report(t, figure.Figure{Name: "loads with a " + way + " of the clock or the machine that left a trace", Value: float64(traces), N: int64(points), Seed: seed})
		}
	}
}

// Nodes that only a failed load has named may be evicted, and their meters are gone.
func TestFailedLoadKeepsNothing(t *testing.T) {
	const many = 1000
	set := parsed(t, after)
	set.Flow[1].Interval = time.Minute // a shape that no other rule has
	attempt := func(calls int) (*life, bool) {
		l := newLife(t, 1, func() { panic("boom") })
		l.from.calls = calls
		return l, l.attempt(set)
	}
	l, loaded := attempt(many)
	require.True(t, loaded)
	l, loaded = attempt(many - l.from.calls) // at the last of those it makes
	require.False(t, loaded)
	orders, there := l.Engine().FindResource("orders")
	require.True(t, there)
	for _, n := range append(nodesOf(orders), &orders.StatisticNode) {
		for _, w := range n.Meters().Windows() {
			assert.Equal(t, 10*time.Second, w.Shape.Interval)
		}
	}
	_, there = l.Engine().FindResource("fresh")
	require.True(t, there, "the load should have got this far")
	l.Engine().Tree().Evict(l.from.Manual.Now())
	_, there = l.Engine().FindResource("fresh")
	assert.False(t, there)
}

func nodesOf(r *engine.Resource) (all []*node.StatisticNode) {
	for _, n := range r.Origins().All() {
		all = append(all, &n.StatisticNode)
	}
	return all
}
