package api_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
)

// A burst into an idle window leaves room for later calls.
// known bug 222
func TestCallsAfterABurst(t *testing.T) {
	var refused atomic.Int64
	for _, buckets := range []int{2, 10} {
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				clock := clocks.NewSystem()
				g, err := api.New(api.Config{Clock: clock, Cluster: cluster.Config{Store: distant{cluster.NewMemory(clock), 500 * time.Microsecond}}})
				require.NoError(t, err)
				defer g.Close()
				require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{
					ID: "orders", Resource: "orders", Threshold: 2000, Buckets: buckets, Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
				}}}))
				var calls sync.WaitGroup
				call := func() {
					calls.Go(func() {
						e, err := g.Entry(t.Context(), "orders")
						if err != nil {
							refused.Add(1)
						}
						e.Exit()
					})
				}
				r := rand.New(rand.NewPCG(seed, 1))
				// All sleeps are in the bubble's time, which passes at once.
				time.Sleep(3*time.Second + time.Duration(r.Int64N(int64(time.Second))))
				for range 600 {
					call()
				}
				time.Sleep(50 * time.Millisecond)
				for range 100 {
					call()
					time.Sleep(10 * time.Millisecond)
				}
				calls.Wait()
			})
		}
	}
	assert.LessOrEqual(t, refused.Load(), int64(20), "of 28,000 calls, where 1300 units and more are free")
}
