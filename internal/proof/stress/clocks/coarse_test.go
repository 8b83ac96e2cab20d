package clocks

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
)

func coarse(t *testing.T, r flow.Rule) *api.Guard {
	clock := clocks.NewCoarse()
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, g.Close())
		assert.NoError(t, clock.Close())
	})
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{r}}))
	return g
}

// While the clock is coarse, the limit holds in every real interval of a bucket minus the
// millisecond that the clock may be late, and in the long run no call is lost.
func TestCoarseClockIsLateByATick(t *testing.T) {
	const limit, buckets, bucket, tick = 50, 2, 5 * time.Millisecond, time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		g := coarse(t, flow.Rule{Resource: "orders", Threshold: limit, Interval: buckets * bucket, Buckets: buckets, Window: flow.Ring})
		began := time.Now()
		var admitted []time.Duration
		var stale int
		for range 10_000 { // a second: a thousand calls in a millisecond
			for range 100 {
				if e, err := g.Entry(t.Context(), "orders"); err == nil {
					admitted = append(admitted, time.Since(began))
					e.Exit()
				}
			}
			if g.Engine().Now() != time.Now().UnixNano() {
				stale++
			}
			time.Sleep(100 * time.Microsecond)
		}
		assert.Greater(t, stale, 8000, "the clock was coarse nearly all the time")
		for i := limit; i < len(admitted); i++ {
			require.GreaterOrEqual(t, admitted[i]-admitted[i-limit], bucket-tick, "the %d before call %d", limit, i)
		}
		assert.GreaterOrEqual(t, len(admitted), limit*(int(time.Second/(buckets*bucket))-1))
	})
}
