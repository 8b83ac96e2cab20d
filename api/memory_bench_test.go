package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// heap returns the bytes in use after garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC() // pools release their memory at the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("GET /orders/", i)
	}
	return names
}

func roomy(b testing.TB, n int) (*api.Guard, *clocks.Manual) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock, Caps: node.Caps{Resources: n, Calls: n}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, g.Close()) })
	return g, clock
}

// The memory of a resource with one context: after one call, after a minute of calls from two
// processors, and after a minute of rest and a reading of the tree.
func BenchmarkMemory(b *testing.B) {
	const n = 2000
	for b.Loop() {
		g, clock := roomy(b, n)
		names := manyNames(n)
		before := heap()
		each := func() float64 { return (heap() - before) / n }
		call := func(at ...string) { // at once, so on different lanes
			var entries []api.Admitted
			for _, name := range at {
				e, _ := g.Entry(context.Background(), name)
				entries = append(entries, e)
			}
			for _, e := range entries {
				e.Exit()
			}
		}
		for _, name := range names {
			call(name)
		}
		b.ReportMetric(each(), "B/new")
		for range 62 {
			clock.Advance(time.Second)
			for _, name := range names {
				call(name, name)
			}
		}
		b.ReportMetric(each(), "B/busy")
		clock.Advance(62 * time.Second)
		g.Tree()
		b.ReportMetric(each(), "B/idle")
		runtime.KeepAlive(g)
		runtime.KeepAlive(names)
	}
}

// A hundred thousand resources: the first call of each, then calls at random and, for comparison,
// calls of a single one.
func BenchmarkManyResources(b *testing.B) {
	const n = 100_000
	names := manyNames(n)
	visit := func(g *api.Guard, name string) {
		e, _ := g.Entry(context.Background(), name)
		e.Exit()
	}
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			g, _ := roomy(b, n)
			for _, name := range names {
				visit(g, name)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/resource")
	})
	g, _ := roomy(b, n)
	for _, name := range names {
		visit(g, name)
	}
	b.Run("at random", func(b *testing.B) {
		random := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			visit(g, names[random.IntN(n)])
		}
	})
	b.Run("hot", func(b *testing.B) {
		for b.Loop() {
			visit(g, names[0])
		}
	})
}

// Loading 10,000 rules while calls run: slowest is the longest of them, in time that its goroutine
// ran.
func BenchmarkLoadRules(b *testing.B) {
	const n = 10_000
	set := rules.Set{}
	for _, name := range manyNames(n) {
		set.Flow = append(set.Flow, flow.Rule{Resource: name, Threshold: 100})
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			g, _ := roomy(b, n)
			require.NoError(b, g.LoadRules(set))
		}
	})
	b.Run("again", func(b *testing.B) {
		g, _ := roomy(b, n)
		require.NoError(b, g.LoadRules(set))
		for b.Loop() {
			require.NoError(b, g.LoadRules(set))
		}
	})
	b.Run("first call after", func(b *testing.B) {
		g, _ := roomy(b, n)
		var worst time.Duration
		for b.Loop() {
			require.NoError(b, g.LoadRules(set))
			began := time.Now()
			e, _ := g.Entry(context.Background(), set.Flow[0].Resource)
			e.Exit()
			worst = max(worst, time.Since(began))
		}
		b.ReportMetric(float64(worst.Microseconds()), "µs/slowest")
	})
}
