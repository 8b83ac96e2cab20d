package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
)

// What a call costs whose limit is its process's alone, and one that spends a lease. Both limits are far away, as the price
// is that of calls that never ask a store.
func BenchmarkLeased(b *testing.B) {
	alone := flow.Rule{ID: "orders", Resource: "orders", Threshold: 1 << 29, Buckets: cluster.Buckets}
	shared := alone
	shared.Cluster = cluster.Rule{Scope: cluster.Global}
	for name, rule := range map[string]flow.Rule{"alone": alone, "leased": shared} {
		g := newGuard(b, api.Config{Cluster: cluster.Config{Store: cluster.NewMemory(clocks.NewSystem())}})
		require.NoError(b, g.LoadRules(api.RuleSet{Flow: []flow.Rule{rule}}))
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
}
