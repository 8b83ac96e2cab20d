package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/upstream"
)

// A refusal of a rule, of whatever family, below a call is a failure to no rule of that call: neither
// plain, nor wrapped, nor marked as the answer of an overloaded server, nor after a wait that ended
// with a deadline.
func TestOwnRefusalsAreNoFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	queue := flow.Rule{Resource: "queue", Threshold: 1, Interval: time.Hour, Behavior: flow.Throttle, MaxWait: 2 * time.Hour}
	for name, refuse := range map[string]func(*api.Guard) error{
		"a limit": func(g *api.Guard) error { _, err := g.Entry(t.Context(), "limited"); return err },
		"a pause": func(g *api.Guard) error { _, err := g.Entry(t.Context(), "paused"); return err },
		"a wait":  func(g *api.Guard) error { _, err := g.Entry(ended, "queue"); return err },
		"a wait with a deadline": func(g *api.Guard) error {
			_, err := g.Entry(t.Context(), "limited")
			return errors.Join(err, context.DeadlineExceeded)
		},
	} {
		for how, wrap := range map[string]func(error) error{
			"plain":   func(err error) error { return err },
			"wrapped": func(err error) error { return fmt.Errorf("stock: %w", err) },
			"marked":  func(err error) error { return api.Overloaded(err, time.Hour) },
			"certain": api.Certain,
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				g := newGuard(t, api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
				require.NoError(t, g.LoadRules(rules.Set{
					Flow:     []flow.Rule{{Resource: "limited"}, queue},
					Breaker:  []breaker.Rule{{Resource: "orders", MinCalls: 1}},
					Outlier:  []outlier.Rule{{Resource: "orders", MinCalls: 1}},
					Adaptive: []adaptive.Rule{{Resource: "orders"}},
					Upstream: []upstream.Rule{{ID: "u", Resource: "orders", Obey: true, Throttle: upstream.Throttle{K: 1}}, {ID: "below", Resource: "paused", Obey: true}},
				}))
				for _, name := range []string{"paused", "queue"} {
					e, err := g.Entry(t.Context(), name)
					require.NoError(t, err)
					e.Fail(api.Overloaded(errors.New("503"), time.Minute))
					e.Exit()
				}
				for range 100 {
					e, err := g.Entry(t.Context(), "orders", api.Endpoint("a"))
					require.NoError(t, err)
					below := refuse(g)
					require.ErrorIs(t, below, api.ErrBlocked)
					e.Fail(wrap(below))
					e.Exit()
				}
				assert.Equal(t, breaker.Closed, g.Breakers()[0].State)
				assert.EqualValues(t, 100, g.Breakers()[0].Neutral)
				assert.Empty(t, g.Ejected("orders"))
				for _, f := range g.RuleStats() {
					switch d := f.Details.(type) {
					case adaptive.Stats:
						assert.EqualValues(t, adaptive.DefaultStart, d.Limits[0].Limit)
					case upstream.Stats:
						if f.ID == "u" {
							assert.Zero(t, d.Paused)
							assert.Zero(t, d.Upstreams[0].Requests)
						}
					}
				}
				orders, _ := g.Tree().Resource("orders")
				assert.Zero(t, orders.Lifetime.Exception)
			})
		}
	}
}

// The tree shows pauses, retries and the throttle beside the calls and below them, and in JSON.
func TestTreeShowsUpstreams(t *testing.T) {
	g := newGuard(t, api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
	require.NoError(t, g.LoadRules(rules.Set{Upstream: []upstream.Rule{
		{ID: "p", Resource: "paused", Obey: true}, {ID: "r", Resource: "retried", Retries: upstream.Retries{Least: 1}, Throttle: upstream.Throttle{K: 1}},
	}}))
	fail := func(name string, after time.Duration, opts ...api.Option) {
		if e, err := g.Entry(t.Context(), name, opts...); err == nil {
			e.Fail(api.Overloaded(errors.New("503"), after))
			e.Exit()
		}
	}
	fail("paused", 90*time.Second)
	for range 3 {
		fail("retried", 0)
	}
	e, err := g.Entry(t.Context(), "retried", api.Retry())
	for err != nil {
		e, err = g.Entry(t.Context(), "retried", api.Retry())
	}
	defer e.Exit()
	var text strings.Builder
	require.NoError(t, g.Tree().WriteText(&text))
	assert.Regexp(t, `(?m)─ paused +.*  paused$`, text.String())
	assert.Regexp(t, `(?m)─ retried +.*  throttled$`, text.String())
	assert.Contains(t, text.String(), "upstream rule p: 1 paused: paused for 90s\n")
	assert.Regexp(t, `upstream rule r: retried: refuses [\d.]+ %, 0 of \d+ accepted, 1 of 1 retries in flight\n`, text.String())
	paused, _ := g.Tree().Resource("paused")
	require.Len(t, paused.Details, 1)
	assert.Equal(t, time.Unix(1_700_000_090, 0).UTC(), paused.Details[0].(*upstream.Status).PausedUntil)
	assert.Equal(t, core.KindUpstream, paused.Details[0].(*upstream.Status).Kind)
}
