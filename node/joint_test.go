package node

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A resource includes the node of its first context, also when that has left the tree and
// come back.
func TestResourceIncludesItsFirstContext(t *testing.T) {
	tree, _ := newTree(t, Caps{})
	c := tree.NewCluster("orders")
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
	require.EqualValues(t, 3, again.Totals().Pass, "a name has one node for as long as anybody has it, and the resource has")
	again.AddPass(0, idle, 4)
	require.EqualValues(t, 7, c.Totals().Pass)
	require.False(t, tree.Call(job, c, nil, idle).Joint())
}
