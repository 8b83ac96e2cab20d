package memory

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// searched holds the resources of a tree, and counts how often they are searched.
type searched struct {
	*node.Registry[node.ClusterNode, *node.ClusterNode]
	searches map[int64]int // by second
	now      int64
}

func (s *searched) Clusters() iter.Seq[*node.ClusterNode] {
	s.searches[s.now/int64(time.Second)]++
	return func(yield func(*node.ClusterNode) bool) {
		for _, c := range s.All() {
			if !yield(c) {
				return
			}
		}
	}
}

// A flood of new names must not become a flood of searches for idle nodes: each name of each kind
// finds its cap full, but only one per second searches.
func TestAFloodSearchesOnceASecond(t *testing.T) {
	layout, err := stat.NewLayout(time.Second, 2, 1)
	require.NoError(t, err)
	s := &searched{searches: make(map[int64]int), now: start.UnixNano()}
	tree, err := node.NewTree(layout, node.Caps{Resources: 10, Contexts: 10, Calls: 10, Origins: 10}, s)
	require.NoError(t, err)
	cluster := func(name string) *node.ClusterNode {
		c := new(node.ClusterNode)
		tree.InitCluster(c, name)
		return c
	}
	s.Registry = node.NewRegistry(tree.Resources(), cluster, nil, tree.MakeRoom)
	over := cluster(node.OverflowName)

	const seconds = 50 // no node is idle for a minute
	n := size(20_000, 50_000, 1_000_000, 5_000_000)
	for i := range n {
		s.now = start.UnixNano() + int64(seconds*time.Second)/int64(n)*int64(i)
		c, ok := s.Obtain(nameOf(i), s.now)
		if !ok {
			c = over
		}
		call := tree.Call(tree.Entrance(nameOf(i), s.now), c, nil, s.now)
		origin := tree.Origin(c, nameOf(i), s.now)
		for _, counters := range []*stat.Counters{&c.Counters, &call.Counters, &origin.Counters} {
			counters.AddBlock(0, s.now, 1)
		}
	}
	most := 0
	for _, searches := range s.searches {
		most = max(most, searches)
	}
	require.Len(t, s.searches, seconds, "and it does search")
	figure.Report(t, figure.Figure{Name: "searches for idle nodes in one second of a flood", Value: float64(most), AtMost: 1, N: int64(n)})
}
