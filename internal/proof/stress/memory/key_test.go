package memory

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
)

// known bug 87: inventing names doesn't reset a name's limit. Regardless of other names that arrive
// and age out, a name with its own node is admitted up to its limit in an interval of any length;
// its node stays as long as the window remembers its calls.
func TestCyclingNamesRaiseNoLimit(t *testing.T) {
	r := random(t)
	const limit, names = 3, 200
	interval := 5 * time.Minute
	g := newGuard(t, api.Config{Caps: node.Caps{Resources: 4, Contexts: 4, Calls: 4, Origins: 4}},
		flow.Rule{Resource: ".*", Match: spec.MatchRegex, Threshold: limit, Interval: interval, Buckets: 5, Window: flow.Strict})

	n := size(20_000, 30_000, 200_000, 2_000_000)
	seen := make(map[string]bool)        // by name: held nodes stay
	admitted := make(map[string][]int64) // the times of the last interval, by node
	worst, beyond := 0, int64(0)
	name := ""
	for i := range n {
		if i%100 == 0 {
			runtime.GC() // a node that is only remembered is dropped; see node.Registry
		}
		if r.IntN(5) == 0 { // else the same once more
			g.clock.Advance(time.Duration(r.Int64N(int64(4 * time.Second))))
			name = nameOf(r.IntN(names))
		}
		if !g.call(name, name, name) {
			continue
		}
		on := node.OverflowName
		if _, ok := g.Engine().FindResource(name); ok {
			on, seen[name] = name, true
		}
		now := g.clock.Now()
		times := slices.DeleteFunc(admitted[on], func(at int64) bool { return at <= now-int64(interval) })
		times = append(times, now)
		admitted[on] = times
		worst = max(worst, len(times))
		beyond += int64(max(0, len(times)-limit))
	}
	require.Equal(t, limit, worst, "names should get their limit")
	require.Greater(t, len(seen), 4, "more names should have had a node than the cap allows: nodes must be evicted and created again")
	require.Positive(t, g.tree.Resources().Overflows())
	figure.Report(t, figure.Figure{Name: "admissions that cycling names gained", Value: float64(beyond), N: int64(n), Seed: *seed})
}
