package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// everyFamily returns one rule of each of the six families on one resource; none refuses a call of
// everyFamilyCall.
func everyFamily() rules.Set {
	return rules.Set{
		Authority: []authority.Rule{{Resource: "GET /orders", Origins: []string{"app"}}},
		System:    []system.Rule{{Metric: system.QPS, Threshold: 1e9}},
		Hotspot:   []hotspot.Rule{{Resource: "GET /orders", Param: "user", Threshold: 1e9}},
		Flow:      []flow.Rule{{Resource: "GET /orders", Threshold: 1e9}},
		Isolation: []isolation.Rule{{Resource: "GET /orders", Threshold: 1e9}},
		Breaker:   []breaker.Rule{{Resource: "GET /orders", Threshold: 0.5}},
	}
}

// everyFamilyCall returns a call that rules of all six families apply to: inbound, with a caller and
// a value, on four nodes.
func everyFamilyCall(t testing.TB) func() {
	t.Helper()
	g := newGuard(t, api.Config{})
	require.NoError(t, g.LoadRules(everyFamily()))
	ctx := api.WithOrigin(api.WithContext(context.Background(), "web"), "app")
	user := "ann"
	return func() {
		e, err := g.Entry(ctx, "GET /orders", api.Inbound(), api.Param("user", user))
		if err != nil {
			panic(err)
		}
		e.Exit()
	}
}

func BenchmarkEveryFamily(b *testing.B) {
	call := everyFamilyCall(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// Passing and blocking don't allocate when rules of all families apply, for any value.
func TestNoAllocationsWithEveryFamily(t *testing.T) {
	blocked := map[string]func(*rules.Set){
		"":          func(*rules.Set) {},
		"authority": func(s *rules.Set) { s.Authority[0].List = authority.Deny },
		"system":    func(s *rules.Set) { s.System[0].Threshold = 0 },
		"hotspot":   func(s *rules.Set) { s.Hotspot[0].Threshold = 0 },
		"flow":      func(s *rules.Set) { s.Flow[0].Threshold = 0 },
		"isolation": func(s *rules.Set) { s.Isolation[0].Threshold = 0 },
		"breaker":   func(*rules.Set) {}, // it is forced open
	}
	id, number := "ann", 1<<30 // neither constant nor small
	for by, set := range blocked {
		for source, opt := range map[string]func() engine.Option{
			"a string": func() engine.Option { return api.Param("user", id) },
			"an int":   func() engine.Option { return api.Param("user", number) },
		} {
			t.Run(by+", "+source, func(t *testing.T) {
				g := newGuard(t, api.Config{})
				all := everyFamily()
				set(&all)
				require.NoError(t, g.LoadRules(all))
				if by == "breaker" {
					require.NoError(t, g.ForceBreaker(g.Rules().Breaker[0].ID, "GET /orders", breaker.ForceOpen))
				}
				ctx := api.WithOrigin(api.WithContext(t.Context(), "web"), "app")
				call := func() {
					e, err := g.Entry(ctx, "GET /orders", api.Inbound(), opt())
					if (err != nil) != (by != "") {
						t.Fatalf("refused by %q: %v", by, err)
					}
					e.Exit()
				}
				call()
				race.AllocatesNothing(t, 1000, call)
			})
		}
	}
}
