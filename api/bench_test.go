package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// The cost of a call is best given relative to its minimum: two readings of the clock, at entry and
// at exit.
func BenchmarkTwoClockReadings(b *testing.B) {
	began := time.Now()
	for b.Loop() {
		_ = time.Since(began)
		_ = time.Since(began)
	}
}

func BenchmarkEntry(b *testing.B) {
	const enough = 1e9
	one := []flow.Rule{{Resource: "GET /orders", Threshold: enough}}
	for _, bm := range []struct {
		name  string
		rules []flow.Rule
		opts  []engine.Option
		from  bool // with a context and an origin
	}{
		{name: "no-rule"},
		{name: "reject", rules: one},
		{name: "reject-four-nodes", rules: one, opts: []engine.Option{api.Inbound()}, from: true},
		{name: "strict", rules: []flow.Rule{{Resource: "GET /orders", Threshold: enough, Window: flow.Strict}}},
		{name: "concurrency", rules: []flow.Rule{{Resource: "GET /orders", Threshold: enough, Metric: flow.Concurrency}}},
		{name: "warm-up", rules: []flow.Rule{{Resource: "GET /orders", Threshold: enough, Behavior: flow.WarmUp}}},
		{name: "blocked", rules: []flow.Rule{{Resource: "GET /orders", Threshold: 1, Interval: 24 * time.Hour}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := newGuard(b, api.Config{}, bm.rules...)
			ctx := context.Background()
			if bm.from {
				ctx = api.WithOrigin(api.WithContext(ctx, "web"), "app")
			}
			b.ReportAllocs()
			for b.Loop() {
				e, _ := g.Entry(ctx, "GET /orders", bm.opts...)
				e.Exit()
			}
		})
	}
}

// Calls with costs, settled or not, and asking for more, beside the plain call under one window.
func BenchmarkCosts(b *testing.B) {
	const enough = 1e9
	rule := func(unit string, behavior flow.Behavior) flow.Rule {
		r := flow.Rule{Resource: "POST /chat", Unit: unit, Threshold: enough, Behavior: behavior}
		if behavior == flow.TokenBucket {
			r.Burst = 1_000_000
		}
		return r
	}
	units := []string{"in", "out", "microUSD"}
	for _, bm := range []struct {
		name  string
		rules []flow.Rule
		costs int
		used  int64 // 0: not settled
	}{
		{name: "plain", rules: []flow.Rule{rule("", flow.Reject)}},
		{name: "one", rules: []flow.Rule{rule("in", flow.Reject)}, costs: 1},
		{name: "one-settled", rules: []flow.Rule{rule("in", flow.Reject)}, costs: 1, used: 2},
		{name: "one-overdrawn", rules: []flow.Rule{rule("in", flow.Reject)}, costs: 1, used: 4},
		{name: "bucket-settled", rules: []flow.Rule{rule("in", flow.TokenBucket)}, costs: 1, used: 2},
		{name: "three-settled", rules: []flow.Rule{rule("in", flow.Reject), rule("out", flow.Reject), rule("microUSD", flow.Reject)}, costs: 3, used: 2},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := newGuard(b, api.Config{}, bm.rules...)
			ctx := context.Background()
			var opts []api.Option
			for _, unit := range units[:bm.costs] {
				opts = append(opts, api.Cost(unit, 3))
			}
			b.ReportAllocs()
			for b.Loop() {
				e, err := g.Entry(ctx, "POST /chat", opts...)
				if err != nil {
					b.Fatal(err)
				}
				if bm.used > 0 {
					for _, unit := range units[:bm.costs] {
						e.Settle(unit, bm.used)
					}
				}
				e.Exit()
			}
		})
	}
	b.Run("more", func(b *testing.B) { // of a call that runs
		g := newGuard(b, api.Config{}, rule("in", flow.Reject))
		ctx := context.Background()
		e, err := g.Entry(ctx, "POST /chat", api.Cost("in", 3))
		if err != nil {
			b.Fatal(err)
		}
		defer e.Exit()
		b.ReportAllocs()
		for b.Loop() {
			if err := e.More(ctx, "in", 3); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One hot resource, with as many callers as processors: run with -cpu 1,2 to see how it scales.
func BenchmarkEntryParallel(b *testing.B) {
	for _, bm := range []struct {
		name  string
		rules []flow.Rule
	}{
		{name: "no-rule"},
		{name: "reject", rules: []flow.Rule{{Resource: "GET /orders", Threshold: 1e9}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := newGuard(b, api.Config{}, bm.rules...)
			ctx := context.Background()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e, _ := g.Entry(ctx, "GET /orders")
					e.Exit()
				}
			})
		})
	}
}
