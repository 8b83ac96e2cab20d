package memory

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { books.Main(m) }

var seed, random = chance.Seed, chance.Source

// size is figure.Size, less under the race detector.
func size(short, ordinary, figures, long int) int {
	n := figure.Size(short, ordinary, figures, long)
	if race.Enabled {
		n = max(1, n/4)
	}
	return n
}

var start = time.Unix(1_700_000_000, 0)

// guard is an engine under test, on a clock that the test moves.
type guard struct {
	*api.Guard
	clock *clocks.Manual
	tree  *node.Tree
}

// newGuard returns a guard that must hold nothing when the test ends.
func newGuard(t testing.TB, cfg api.Config, set ...flow.Rule) *guard {
	t.Helper()
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepRecord)
	cfg.Clock = clock
	cfg.Logger = slog.New(slog.DiscardHandler)
	g, err := api.New(cfg)
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(rules.Set{Flow: set}))
	books.Keep(t, g.Engine())
	return &guard{g, clock, g.Engine().Tree()}
}

// enter makes a call in a context, from an origin; "" is none.
func (g *guard) enter(in, origin, resource string, opts ...engine.Option) (api.Admitted, error) {
	return g.Entry(engine.WithOrigin(engine.WithContext(context.Background(), in), origin), resource, opts...)
}

// call makes a call that ends at once, and reports whether it was admitted.
func (g *guard) call(in, origin, resource string) bool {
	e, err := g.enter(in, origin, resource)
	e.Exit()
	return err == nil
}

func (g *guard) evict() { g.tree.Evict(g.clock.Now()) }

// find returns a resource that must be there.
func (g *guard) find(t testing.TB, name string) *engine.Resource {
	t.Helper()
	r, ok := g.Engine().FindResource(name)
	require.True(t, ok, "resource %s", name)
	return r
}

// overflow is the resource of the names beyond the cap.
func (g *guard) overflow() *engine.Resource {
	r, _ := g.Engine().FindResource(node.OverflowName)
	return r
}

// used returns the number of nodes of each kind within the caps: resources,
// contexts, call nodes, origins.
func (g *guard) used() [4]int {
	return [4]int{g.tree.Resources().Used(), g.tree.Contexts().Used(), g.tree.Calls().Used(), g.tree.Origins().Used()}
}
