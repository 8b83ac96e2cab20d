package api_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// shut has rules of each family, by its name in a rule set, that refuse calls of orders.
var shut = map[string]struct {
	set  rules.Set
	kind core.Kind
	trip bool // by a call that fails
	hold bool // while another call runs
	asks bool // by a call whose server asks for a pause, with trip
}{
	"Authority": {set: rules.Set{Authority: []authority.Rule{{Resource: "orders", Origins: []string{"somebody else"}}}}, kind: core.KindAuthority},
	"System":    {set: rules.Set{System: []system.Rule{{Metric: system.QPS, Threshold: 0}}}, kind: core.KindSystem},
	"Hotspot":   {set: rules.Set{Hotspot: []hotspot.Rule{{Resource: "orders", Index: hotspot.At(0), Threshold: 0}}}, kind: core.KindHotspot},
	"Flow":      {set: rules.Set{Flow: []flow.Rule{{Resource: "orders", Threshold: 0}}}, kind: core.KindFlow},
	"Isolation": {set: rules.Set{Isolation: []isolation.Rule{{Resource: "orders", Threshold: 0}}}, kind: core.KindIsolation},
	"Adaptive":  {set: rules.Set{Adaptive: []adaptive.Rule{{Resource: "orders", Ceiling: 2}}}, kind: core.KindAdaptive, hold: true},
	"Breaker":   {set: rules.Set{Breaker: []breaker.Rule{{Resource: "orders", MinCalls: 1}}}, kind: core.KindBreaker, trip: true},
	"Outlier":   {set: rules.Set{Outlier: []outlier.Rule{{Resource: "orders", MinCalls: 1}}}, kind: core.KindOutlier, trip: true},
	"Upstream":  {set: rules.Set{Upstream: []upstream.Rule{{Resource: "orders", Obey: true}}}, kind: core.KindUpstream, trip: true, asks: true},
	"Groups": {set: rules.Set{
		Groups:  []gateway.Group{{ID: "orders", Paths: []gateway.Path{{Path: "/orders"}}}},
		Gateway: []gateway.Rule{{Group: "orders", Threshold: 0}},
	}, kind: core.KindFlow},
	"Gateway": {set: rules.Set{Gateway: []gateway.Rule{{Route: "orders", Threshold: 0}}}, kind: core.KindFlow},
	"Cluster": {set: rules.Set{
		Cluster: []rules.Cluster{{Namespace: "shop"}}, Flow: []flow.Rule{{Resource: "orders", Threshold: 0}},
	}, kind: core.KindFlow},
}

// A rule of each family, loaded as users do, blocks a call. A family without a row here fails.
// known bug 74
func TestEveryFamilyIsSeenToBlock(t *testing.T) {
	for family := range reflect.TypeFor[rules.Set]().Fields() {
		t.Run(family.Name, func(t *testing.T) {
			row, ok := shut[family.Name]
			require.True(t, ok, "add a rule of this family that blocks everything")
			g := newGuard(t, api.Config{})
			e, err := g.Entry(t.Context(), "orders", api.Inbound(), api.Args("x"))
			require.NoError(t, err)
			e.Exit()
			require.NoError(t, g.LoadRules(row.set))
			if row.hold { // there is no limit of 0
				e, err := g.Entry(t.Context(), "orders", api.Units(2))
				require.NoError(t, err)
				defer e.Exit()
			}
			if row.trip {
				failure := errors.New("x")
				if row.asks {
					failure = api.Overloaded(failure, time.Minute)
				}
				require.NoError(t, g.Do(t.Context(), "orders", func(context.Context) error { return nil }, api.Endpoint("another")))
				require.ErrorIs(t, g.Do(t.Context(), "orders", func(context.Context) error { return failure }, api.Endpoint("x")), failure)
			}
			_, err = g.Entry(t.Context(), "orders", api.Inbound(), api.Args("x"), api.Endpoint("x"))
			require.ErrorIs(t, err, core.ErrBlocked)
			assert.Equal(t, row.kind, core.KindOf(err))
		})
	}
}

// Guarded code that panics releases its units, and the panic continues.
// known bug 55, 63
func TestPanicInGuardedCodeGivesItsPlaceBack(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: "orders", Metric: flow.Concurrency, Threshold: 1})
	for range 100 {
		assert.PanicsWithValue(t, "x", func() {
			_ = g.Do(t.Context(), "orders", func(context.Context) error { panic("x") })
		})
		assert.PanicsWithValue(t, "y", func() {
			_, _ = api.CallOn(t.Context(), g, "orders", func(context.Context) (int, error) { panic("y") })
		})
	}
	failure := errors.New("z")
	assert.ErrorIs(t, g.Do(t.Context(), "orders", func(context.Context) error { return failure }), failure)
	orders, ok := g.Tree().Resource("orders")
	require.True(t, ok)
	assert.EqualValues(t, 201, orders.Lifetime.Pass)
	assert.EqualValues(t, 201, orders.Lifetime.Complete)
	assert.EqualValues(t, 201, orders.Lifetime.Exception)
}
