package memory

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/stat"
)

// witness is a slot that records every node that counts a call, so that evicted ones are found too.
type witness struct{ resources, calls, origins nodeSet }

type nodeSet struct{ sync.Map }

func (s *nodeSet) see(n *node.StatisticNode) {
	if _, seen := s.Load(n); !seen {
		s.Store(n, true)
	}
}

// sum adds up the counts of all nodes.
func (s *nodeSet) sum() (counts stat.Counts, nodes int) {
	s.Range(func(n, _ any) bool {
		all := n.(*node.StatisticNode).Totals()
		counts.Add(&all)
		nodes++
		return true
	})
	return counts, nodes
}

func (w *witness) Name() string { return "witness" }

func (w *witness) Prepare(inv *engine.Invocation) { w.see(inv) }

func (w *witness) Passed(inv *engine.Invocation) { w.see(inv) }

func (w *witness) Blocked(inv *engine.Invocation, _ *core.BlockError) { w.see(inv) }

func (w *witness) Completed(inv *engine.Invocation) { w.see(inv) }

func (w *witness) see(inv *engine.Invocation) {
	w.resources.see(&inv.Resource().StatisticNode)
	w.calls.see(&inv.Node().StatisticNode)
	w.origins.see(&inv.OriginNode().StatisticNode)
}

// Calls use a few names at a time whose nodes are always about to be evicted: evictions run
// concurrently, and new names fill the caps. Even if a name's node is evicted and created again,
// each call is counted once on a node of each kind, each exit on the node of its call, and nothing
// with a call in flight is evicted.
func TestEvictionsLoseNoCall(t *testing.T) {
	r := random(t)
	calls := size(20_000, 20_000, 1_000_000, 10_000_000)
	w := new(witness)
	g := newGuard(t, api.Config{
		Caps:  node.Caps{Resources: 4, Contexts: 4, Calls: 6, Origins: 6},
		Chain: (*slots.Chain)(trial.Chain().With(w, engine.After("clusterBuilder"))),
	}, flow.Rule{Resource: ".*", Match: spec.MatchRegex, Threshold: 50})

	var done atomic.Bool
	var evicter sync.WaitGroup
	evicted := 0
	evicter.Go(func() {
		for !done.Load() {
			g.clock.Advance(20 * time.Second)
			evicted += g.tree.Evict(g.clock.Now())
			runtime.Gosched()
		}
	})
	const goroutines = 6
	var entered, refused, gone atomic.Int64
	var crowd sync.WaitGroup
	for i := range goroutines {
		r := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		crowd.Go(func() {
			turn := 0
			for i := range calls / goroutines {
				if now := i * 20 * goroutines / calls; now != turn {
					turn = now // the evicter may not have had one: everything idle is evicted here
					g.clock.Advance(2 * time.Minute)
					g.evict()
				}
				name := nameOf(turn*8 + r.IntN(8)) // with its own context and caller
				e, err := g.enter(name, name, name)
				if err != nil {
					refused.Add(1)
					continue
				}
				entered.Add(1)
				if r.IntN(2) == 0 {
					runtime.Gosched()
				}
				if r.IntN(8) == 0 { // held while everything ages
					if !held(g, name) {
						gone.Add(1)
					}
				}
				e.Exit()
			}
		})
	}
	crowd.Wait()
	done.Store(true)
	evicter.Wait()
	const places = 6 + 1 // the largest cap, and the overflow
	for what, seen := range map[string]*nodeSet{"resources": &w.resources, "call nodes": &w.calls, "origins": &w.origins} {
		counts, nodes := seen.sum()
		require.Greater(t, nodes, places, "%s should be evicted and created again", what)
		lost := entered.Load() + refused.Load() - counts.Entered - counts.Block
		require.Equal(t, entered.Load(), counts.Entered, what)
		require.Equal(t, entered.Load(), counts.Exited, what)
		require.Equal(t, refused.Load(), counts.Block, what)
		figure.Report(t, figure.Figure{Name: "calls lost on " + what + " that are evicted", Value: float64(lost), N: entered.Load() + refused.Load(), Seed: *seed})
	}
	require.Zero(t, gone.Load(), "nodes that left with a call in flight")
	g.clock.Advance(time.Hour)
	g.evict()
	require.Equal(t, [4]int{}, g.used())
	t.Logf("%d were evicted", evicted)
}

// held reports whether a call in flight is found on the resource of that name, or on the overflow.
func held(g *guard, name string) bool {
	r, ok := g.Engine().FindResource(name)
	return ok && r.InFlight() > 0 || g.overflow().InFlight() > 0
}
