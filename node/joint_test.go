package node

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A resource includes the node of its first context, even after that node was evicted and brought
// back.
func TestResourceIncludesItsFirstContext(t *testing.T) {
	tree, _ := newTree(t, Caps{})
	c := tree.newCluster("orders")
	web, job := tree.Entrance("web", epoch), tree.Entrance("job", epoch)
	first, second := tree.Call(web, c, nil, epoch), tree.Call(job, c, nil, epoch)
	require.True(t, first.Joint())
	require.False(t, second.Joint())

	first.AddPass(0, epoch, 3)
	require.EqualValues(t, 3, c.Totals().Pass)
	require.Zero(t, second.Totals().Pass)
	idle := epoch + seconds(120)
	require.False(t, c.Idle(idle), "the call is in flight")
	first.AddComplete(0, epoch, 3, 5, false)
	require.True(t, c.Idle(idle))

	require.Equal(t, 2, c.Calls().Evict(idle))
	first = nil
	runtime.GC()
	runtime.GC()
	again := tree.Call(web, c, nil, idle)
	require.True(t, again.Joint())
	require.EqualValues(t, 3, again.Totals().Pass, "a name keeps its node while anything refers to it, as the resource does")
	again.AddPass(0, idle, 4)
	require.EqualValues(t, 7, c.Totals().Pass)
	require.False(t, tree.Call(job, c, nil, idle).Joint())
}

// Memory that an entrance or a node needed for many children is released.
func TestEmptyBranchKeepsNothing(t *testing.T) {
	var b Branch
	n := new(DefaultNode)
	require.True(t, b.add(n))
	b.remove(n)
	require.Nil(t, b.children)
	require.True(t, b.add(n))
	require.Equal(t, 1, b.Len())
}

// A search that finds no idle nodes allocates nothing, even if the first context of every resource
// was evicted and is remembered.
func TestSweepThatFindsNothing(t *testing.T) {
	tree, o := newTree(t, Caps{})
	for i := range 100 {
		c := o.Pin(fmt.Sprint(i))
		n := tree.Call(tree.Entrance("web", epoch), c, nil, epoch)
		n.AddBlock(0, epoch, 1)
	}
	now := epoch + seconds(180)
	require.Equal(t, 101, tree.Evict(now), "the call nodes, and their context")
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { tree.Evict(now) }), 10.0)
}
