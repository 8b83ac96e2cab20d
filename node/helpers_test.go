package node

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/stat"
)

var random = chance.Source

// rounds returns the number of repetitions of a test: fewer under the race detector, and fewer with
// -short.
func rounds(n int) int {
	if race.Enabled {
		n /= 8
	}
	if testing.Short() {
		n /= 4
	}
	return max(n, 1)
}

func crowd(goroutines int, f func(g int)) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

// together runs all of fs, which begin as nearly at the same instant as possible.
func together(fs ...func()) {
	var arrived atomic.Int64
	crowd(len(fs), func(g int) {
		arrived.Add(1)
		for arrived.Load() < int64(len(fs)) {
			runtime.Gosched()
		}
		fs[g]()
	})
}

func seconds(n int64) int64 { return n * int64(time.Second) }

var epoch = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano()

func layout(t testing.TB) *stat.Layout {
	t.Helper()
	l, err := stat.NewLayout(time.Second, 2, 1)
	require.NoError(t, err)
	return l
}

// owner keeps cluster nodes in a registry, as an engine does.
type owner struct {
	*Registry[ClusterNode, *ClusterNode]
}

func (o *owner) Clusters() iter.Seq[*ClusterNode] {
	return func(yield func(*ClusterNode) bool) {
		for _, c := range o.All() {
			if !yield(c) {
				return
			}
		}
	}
}

func newTree(t testing.TB, caps Caps) (*Tree, *owner) {
	t.Helper()
	o := new(owner)
	tree, err := NewTree(layout(t), caps, o)
	require.NoError(t, err)
	o.Registry = NewRegistry(tree.Resources(), tree.newCluster, func(c *ClusterNode) {
		c.Calls().Clear()
		c.Origins().Clear()
	}, tree.MakeRoom)
	return tree, o
}

func (o *owner) cluster(t testing.TB, name string) *ClusterNode {
	t.Helper()
	c, ok := o.Obtain(name, 0)
	require.True(t, ok)
	return c
}

// walk visits all call nodes that can be reached from the entrances, with the path of names to
// each.
func walk(tree *Tree, visit func(path string, n *DefaultNode)) {
	var down func(path string, b *Branch)
	down = func(path string, b *Branch) {
		for _, n := range b.Children() {
			visit(path+"/"+n.Name(), n)
			down(path+"/"+n.Name(), &n.Branch)
		}
	}
	for name, e := range tree.Entrances().All() {
		down(name, &e.Branch)
	}
	down(OverflowName, &tree.OverflowEntrance().Branch)
}

// paths returns the paths of walk.
func paths(tree *Tree) []string {
	var all []string
	walk(tree, func(path string, _ *DefaultNode) { all = append(all, path) })
	return all
}
