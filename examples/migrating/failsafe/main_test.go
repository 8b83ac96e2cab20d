package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
)

func Example() {
	main()
	// Output:
	// 1 attempts: 12.99, <nil>
	// 3 attempts: 12.99, <nil>
	// 4 attempts: yesterday's price, <nil>
	// 1 attempts: yesterday's price, <nil>
}

func newGuard(t *testing.T, set api.RuleSet) *api.Guard {
	t.Helper()
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(set))
	return g
}

// hang blocks until its context ends.
func hang(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A timeout inside the call opens the breaker; a timeout around it doesn't.
func TestWhereTheTimeLimitBelongs(t *testing.T) {
	for name, inside := range map[string]bool{"inside": true, "around": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(t, api.RuleSet{Breaker: []breaker.Rule{
					{Resource: "prices", Strategy: breaker.ConsecutiveErrors, Threshold: 5, Recovery: time.Minute},
				}})
				for range 5 {
					if inside {
						_, err := api.CallOn(t.Context(), g, "prices", func(ctx context.Context) (string, error) {
							ctx, cancel := context.WithTimeout(ctx, time.Second)
							defer cancel()
							return hang(ctx)
						})
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						continue
					}
					_, err := failsafe.With(timeout.New[string](time.Second)).WithContext(t.Context()).
						GetWithExecution(func(x failsafe.Execution[string]) (string, error) {
							return api.CallOn(x.Context(), g, "prices", hang)
						})
					assert.ErrorIs(t, err, timeout.ErrExceeded)
				}
				_, err := g.Entry(t.Context(), "prices")
				assert.Equal(t, inside, api.KindOf(err) == api.KindBreaker, "%v", err)
			})
		})
	}
}

// Each hedge is a separate call that a limit can refuse; the slower one is not a failure.
func TestHedgesAreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, api.RuleSet{
			Flow:    []flow.Rule{{Resource: "prices", Metric: flow.Concurrency, Threshold: 2}},
			Breaker: []breaker.Rule{{Resource: "prices", Strategy: breaker.ConsecutiveErrors, Threshold: 1}},
		})
		hedge := hedgepolicy.NewBuilderWithDelay[string](100 * time.Millisecond).WithMaxHedges(1).Build()
		answer, err := failsafe.With(hedge).WithContext(t.Context()).
			GetWithExecution(func(x failsafe.Execution[string]) (string, error) {
				return api.CallOn(x.Context(), g, "prices", func(ctx context.Context) (string, error) {
					if x.IsHedge() {
						return "12.99", nil
					}
					return hang(ctx)
				})
			})
		assert.NoError(t, err)
		assert.Equal(t, "12.99", answer)
		synctest.Wait()
		e, err := g.Entry(t.Context(), "prices")
		assert.NoError(t, err, "the breaker is closed, and nothing is in flight")
		e.Exit()
	})
}
