package api_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules"
)

// A call under one hotspot rule, for one value and for many.
func BenchmarkHotspot(b *testing.B) {
	for name, rule := range map[string]hotspot.Rule{
		"reject":      {Threshold: 1e12},
		"concurrency": {Threshold: 1e12, Metric: hotspot.Concurrency},
		"blocked":     {Threshold: 0},
	} {
		for _, values := range []int{1, 5000} {
			users := make([]string, values)
			for i := range users {
				users[i] = "user-" + strconv.Itoa(i)
			}
			b.Run(name+"/values="+strconv.Itoa(values), func(b *testing.B) {
				rule.Resource, rule.Param = "GET /orders", "user"
				g := newGuard(b, api.Config{})
				require.NoError(b, g.LoadRules(rules.Set{Hotspot: []hotspot.Rule{rule}}))
				ctx := b.Context()
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					e, _ := g.Entry(ctx, "GET /orders", api.Param("user", users[i]))
					e.Exit()
					if i++; i == values {
						i = 0
					}
				}
			})
		}
	}
}

// Callers on all processors use one value, with units to spare and with none. Run it with -cpu 2 or
// more: lending is made for this case.
func BenchmarkHotspotContended(b *testing.B) {
	for name, threshold := range map[string]float64{"passes": 1e12, "blocked": 0} {
		b.Run(name, func(b *testing.B) {
			g := newGuard(b, api.Config{})
			require.NoError(b, g.LoadRules(rules.Set{Hotspot: []hotspot.Rule{{Resource: "GET /orders", Param: "user", Threshold: threshold}}}))
			ctx := b.Context()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e, _ := g.Entry(ctx, "GET /orders", api.Param("user", "one"))
					e.Exit()
				}
			})
		})
	}
}
