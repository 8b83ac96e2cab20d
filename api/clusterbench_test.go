package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

// The cost of a call under a local limit, and of one that spends units leased by its member. All
// limits are far from reached, so the cost is that of calls that never ask the store.
func BenchmarkLeased(b *testing.B) {
	sharing := cluster.Rule{Scope: cluster.Global}
	window := flow.Rule{ID: "orders", Resource: "orders", Threshold: 1 << 29, Buckets: cluster.Buckets}
	permits := isolation.Rule{ID: "orders", Resource: "orders", Threshold: 1 << 20}
	windows, isolations := []flow.Rule{window, window}, []isolation.Rule{permits, permits}
	windows[1].Cluster, isolations[1].Cluster = sharing, sharing
	for i, name := range []string{"alone", "leased"} {
		benchmarkCalls(b, "window/"+name, api.RuleSet{Flow: windows[i : i+1]})
		benchmarkCalls(b, "permits/"+name, api.RuleSet{Isolation: isolations[i : i+1]})
	}
}

func benchmarkCalls(b *testing.B, name string, set api.RuleSet) {
	g := newGuard(b, api.Config{Cluster: cluster.Config{Store: cluster.NewMemory(clocks.NewSystem())}})
	require.NoError(b, g.LoadRules(set))
	call := func() {
		if entry, err := g.Entry(b.Context(), "orders"); err == nil {
			entry.Exit()
		}
	}
	b.Run(name+"/one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run(name+"/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				call()
			}
		})
	})
}
