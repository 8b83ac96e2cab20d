//go:build sim

package node

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/sim"
	"github.com/penstock-go/penstock/stat"
)

// Calls of two contexts are placed and counted while others evict. In the end each call
// node that is registered stands in the tree, once, and each that stands there is
// registered; and the resource's node has all calls, whichever of them it includes.
func TestSimTree(t *testing.T) {
	layout, err := stat.NewLayout(time.Second, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	sim.Random(t, func(s *sim.Schedule) {
		o := new(owner)
		tree, err := NewTree(layout, Caps{}, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Registry = NewRegistry(tree.Resources(), tree.NewCluster, nil, tree.MakeRoom)
		c := tree.NewCluster("a")
		entrances := []*EntranceNode{tree.Entrance("web", epoch), tree.Entrance("job", epoch)}
		counted := 0
		for range 2 + s.Rand.IntN(2) {
			e := entrances[s.Rand.IntN(2)]
			s.Named("caller", func() {
				n := tree.Call(e, c, nil, epoch)
				n.AddPass(0, epoch, 1)
				if !n.Joint() {
					c.AddPass(0, epoch, 1)
				}
				for n.Retired() {
					tree.RestoreCall(n, epoch)
				}
				counted++
			})
		}
		s.Named("evicter", func() { c.calls.Evict(epoch); c.calls.Evict(epoch) })
		s.Check(func() {
			stand := 0
			for _, e := range tree.Entrances().All() {
				for _, n := range e.Children() {
					stand += int(n.InFlight())
				}
			}
			for _, e := range entrances {
				for _, n := range e.Children() {
					if e.Retired() {
						stand += int(n.InFlight())
					}
				}
			}
			if stand != counted {
				s.Failf("%d calls in flight, %d are found in the tree", counted, stand)
			}
			if all := int(c.InFlight()); all != counted {
				s.Failf("%d calls in flight, the resource has %d", counted, all)
			}
		})
	})
}
