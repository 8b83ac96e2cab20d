package api

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/slots"
)

// With the option, percentiles are shown wherever response times are; without it, nowhere.
func TestPercentiles(t *testing.T) {
	for _, on := range []bool{false, true} {
		clock := NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
		g, err := New(Config{Clock: clock, Percentiles: on})
		require.NoError(t, err)
		call := func(ctx context.Context, rt time.Duration, opts ...Option) {
			e, err := g.Entry(ctx, "orders", opts...)
			require.NoError(t, err)
			clock.Advance(rt)
			e.Exit()
		}
		for rt := range 100 {
			call(WithContext(t.Context(), []string{"web", "job"}[rt%2]), time.Duration(rt+1)*time.Millisecond)
		}
		call(t.Context(), time.Second, LongLived()) // which has no response time

		reply := httptest.NewRecorder()
		g.Handler().ServeHTTP(reply, httptest.NewRequest("GET", "/tree", nil))
		var text strings.Builder
		require.NoError(t, g.Tree().WriteText(&text))
		assert.Equal(t, text.String(), reply.Body.String())
		reply = httptest.NewRecorder()
		g.Handler().ServeHTTP(reply, httptest.NewRequest("GET", "/nodes", nil))
		var nodes []struct{ P50Ms, P95Ms, P99Ms *float64 }
		require.NoError(t, json.Unmarshal(reply.Body.Bytes(), &nodes))
		require.Len(t, nodes, 1)
		tree, err := json.Marshal(g.Tree())
		require.NoError(t, err)
		assert.Equal(t, on, strings.Contains(string(tree), `"p99Ms":`))
		if !on {
			assert.NotContains(t, text.String(), "p50")
			assert.Nil(t, nodes[0].P50Ms)
			assert.Zero(t, g.Tree().Resources[0].Percentiles)
			continue
		}
		assert.Contains(t, text.String(), "p50 49ms p95 94ms p99 99ms")
		assert.InDelta(t, 50, *nodes[0].P50Ms, 0.031*50)
		assert.InDelta(t, 95, *nodes[0].P95Ms, 0.031*95)
		assert.InDelta(t, 99, *nodes[0].P99Ms, 0.031*99)
		assert.EqualValues(t, 100, g.Tree().Resources[0].Percentiles.Count)
		clock.Advance(2 * time.Minute)
		assert.Zero(t, g.Tree().Resources[0].Percentiles, "of the last minute")
	}
	_, err := New(Config{Percentiles: true, Chain: slots.NewChain()})
	assert.EqualError(t, err, "penstock: Config.Percentiles needs the slot statistic, which Config.Chain doesn't have: add the slot or remove Percentiles")
}

// BenchmarkPercentilesCost measures the cost of percentiles per call, as the median of paired runs,
// and the cost of two readings of the clock. The three measurements alternate, so that other load on
// the machine slows all of them.
func BenchmarkPercentilesCost(b *testing.B) {
	const calls = 1_000
	ctx := context.Background()
	timed := func(f func()) float64 {
		begin := time.Now()
		for range calls {
			f()
		}
		return float64(time.Since(begin)) / calls
	}
	call := func(on bool) func() {
		g, err := New(Config{Percentiles: on})
		require.NoError(b, err)
		b.Cleanup(func() { _ = g.Close() })
		return func() {
			e, _ := g.Entry(ctx, "orders")
			e.Exit()
		}
	}
	off, on, began := call(false), call(true), time.Now()
	var more, clock []float64
	for b.Loop() {
		for range 100 {
			less := timed(off)
			more = append(more, timed(on)-less)
			clock = append(clock, timed(func() { _, _ = time.Since(began), time.Since(began) }))
		}
	}
	slices.Sort(more)
	slices.Sort(clock)
	b.ReportMetric(more[len(more)/2], "more-ns/call")
	b.ReportMetric(clock[len(clock)/2], "two-clock-readings-ns")
	b.ReportMetric(100*more[len(more)/2]/clock[len(clock)/2], "%of-two-readings")
}
