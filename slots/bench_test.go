package slots_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/slots"
)

func newEngine(t testing.TB, cfg engine.Config, rules ...flow.Rule) *engine.Engine {
	t.Helper()
	cfg.Chain = trial.Chain()
	e, err := engine.NewEngine(cfg)
	require.NoError(t, err)
	books.Keep(t, e)
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
	return e
}

func BenchmarkTwoClockReadings(b *testing.B) {
	began := time.Now()
	for b.Loop() {
		_ = time.Since(began)
		_ = time.Since(began)
	}
}

func BenchmarkNoRule(b *testing.B) {
	e := newEngine(b, engine.Config{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		entry, _ := e.Enter(ctx, "GET /orders", nil)
		entry.Exit()
	}
}

// BenchmarkLeakAfter measures the cost per call of watching for leaks.
func BenchmarkLeakAfter(b *testing.B) {
	e := newEngine(b, engine.Config{LeakAfter: time.Minute})
	defer e.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		entry, _ := e.Enter(ctx, "GET /orders", nil)
		entry.Exit()
	}
}

// BenchmarkPercentiles measures the cost per call of percentiles, compared with BenchmarkNoRule.
func BenchmarkPercentiles(b *testing.B) {
	chain := trial.Chain().Replace(slots.Percentiles().(engine.Slot))
	e, err := engine.NewEngine(engine.Config{Chain: chain})
	require.NoError(b, err)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		entry, _ := e.Enter(ctx, "GET /orders", nil)
		entry.Exit()
	}
}

func BenchmarkRejectRule(b *testing.B) {
	e := newEngine(b, engine.Config{}, flow.Rule{Resource: "GET /orders", Threshold: 1e9})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		entry, _ := e.Enter(ctx, "GET /orders", nil)
		entry.Exit()
	}
}

func BenchmarkBlocked(b *testing.B) {
	e := newEngine(b, engine.Config{Logger: slog.New(slog.DiscardHandler)}, flow.Rule{Resource: "GET /orders", Threshold: 0})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = e.Enter(ctx, "GET /orders", nil)
	}
}

// BenchmarkKeepRefusals measures the cost that keeping the last rejections adds to a rejected call,
// as the median of paired runs. The two alternate, so that other work of the machine slows both.
func BenchmarkKeepRefusals(b *testing.B) {
	const calls = 1_000
	ctx := context.Background()
	refusing := func() *engine.Engine {
		return newEngine(b, engine.Config{Logger: slog.New(slog.DiscardHandler)}, flow.Rule{Resource: "GET /orders", Threshold: 0})
	}
	timed := func(e *engine.Engine) float64 {
		begin := time.Now()
		for range calls {
			_, _ = e.Enter(ctx, "GET /orders", nil)
		}
		return float64(time.Since(begin)) / calls
	}
	plain, keeping := refusing(), refusing()
	defer keeping.KeepRefusals()()
	var more []float64
	for b.Loop() {
		for range 100 {
			less := timed(plain)
			more = append(more, timed(keeping)-less)
		}
	}
	slices.Sort(more)
	b.ReportMetric(more[len(more)/2], "more-ns/call")
}

func BenchmarkNoRuleParallel(b *testing.B) {
	e := newEngine(b, engine.Config{})
	ctx := context.Background()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			entry, _ := e.Enter(ctx, "GET /orders", nil)
			entry.Exit()
		}
	})
}
