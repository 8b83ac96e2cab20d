package starvation

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// A garbage collection empties pools, waiting calls keep the objects that they took out of them,
// and nested calls take one more each: so lanes are assigned again and again. After 100
// collections, with a thousand calls waiting, no node has more lanes than the cap; the semaphore is
// exact at every step, and when all calls have exited, on goroutines other than the ones that
// entered, the books balance. known bug 3, 56, 59
func TestCollectionsAndSleepers(t *testing.T) {
	sleepers := figure.Size(100, 400, 5000, 20_000)
	collections := figure.Size(10, 100, 200, 1000)
	if race.Enabled {
		sleepers, collections = min(sleepers, 200), min(collections, 10)
	}
	const busy, batch = 8, 20 // callers between two collections, and calls of each
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
		{Resource: "outer", Threshold: 1e6, Metric: flow.Concurrency},
		{Resource: "inner", Threshold: 1e6, Metric: flow.Concurrency},
		{Resource: "inner", Threshold: 1000, Behavior: flow.Throttle, MaxWait: time.Hour},
	}}))
	semaphore := func(resource string) int64 {
		r, ok := g.Engine().FindResource(resource)
		require.True(t, ok)
		return r.Meters().Semaphore(nil).InUse()
	}

	leave := make(chan api.Admitted, 2*sleepers)
	var asleep, leaving sync.WaitGroup
	for i := range sleepers {
		asleep.Go(func() {
			ctx := api.WithOrigin(api.WithContext(t.Context(), fmt.Sprint("c", i%5)), fmt.Sprint("o", i%7))
			outer, err := g.Entry(ctx, "outer", api.Inbound())
			assert.NoError(t, err)
			inner, err := g.Entry(outer.Context(), "inner")
			assert.NoError(t, err)
			leave <- inner
			leave <- outer
		})
	}
	clock.AwaitParked(sleepers - 1) // the first one ran at once
	for int(semaphore("outer")) != sleepers || len(leave) != 2 {
		runtime.Gosched()
	}

	var calls atomic.Int64
	wrong := 0
	for n := range collections {
		var between sync.WaitGroup
		for i := range busy {
			between.Go(func() {
				ctx := api.WithContext(t.Context(), fmt.Sprint("c", i%5))
				for range batch {
					err := g.Do(ctx, "outer", func(ctx context.Context) error {
						return g.Do(ctx, "deeper", func(context.Context) error { calls.Add(1); return nil })
					}, api.Inbound())
					assert.NoError(t, err)
				}
			})
		}
		if n%2 == 0 {
			between.Go(runtime.GC) // now and then while they run
		}
		between.Wait()
		runtime.GC()
		if semaphore("outer") != int64(sleepers) || semaphore("inner") != int64(sleepers) {
			wrong++
		}
	}
	most := g.Engine().Tree().Layout().Lanes()
	books.EachNode(g.Engine(), func(name string, n *node.StatisticNode) {
		assert.LessOrEqual(t, n.Lanes(), most, name)
	})
	assert.EqualValues(t, collections*busy*batch, calls.Load())

	for range 4 {
		leaving.Go(func() {
			for e := range leave {
				e.Exit()
				e.Exit()
			}
		})
	}
	clock.Advance(time.Duration(sleepers) * time.Millisecond) // lets one after the other run
	asleep.Wait()
	close(leave)
	leaving.Wait()
	assert.Zero(t, clock.Parked())
	total := g.Engine().Tree().Inbound().Totals()
	assert.EqualValues(t, int64(sleepers)+calls.Load(), total.Entered)
	figure.Report(t, figure.Figure{Name: "semaphore off, sleeping calls and collections", Value: float64(wrong),
		N: int64(collections)})
}
