package api_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// The counts of a rule's refusals, real or in shadow mode, survive the eviction of the resource:
// they stay while rules are loaded, and continue when the resource is used again.
// known bug 143
func TestFiguresOutliveTheirResources(t *testing.T) {
	for field := range reflect.TypeFor[rules.Set]().Fields() {
		if field.Name == "Groups" || field.Name == "Gateway" || field.Name == "Cluster" {
			continue // no families: their rules are those of others
		}
		for _, mode := range []spec.Mode{spec.Enforce, spec.Shadow} {
			t.Run(field.Name+"/"+mode.String(), func(t *testing.T) {
				row := shut[field.Name]
				clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
				g := newGuard(t, api.Config{Clock: clock, Caps: node.Caps{Resources: 2}})
				require.NoError(t, g.LoadRules(byExpression(row.set, field.Name, mode)))
				e, err := g.Entry(t.Context(), "another", api.Endpoint("another"))
				require.NoError(t, err)
				e.Exit()
				assert.False(t, figuresOf(g).Asked)
				refuse := func() {
					if row.hold {
						e, err := g.Entry(t.Context(), "orders", api.Units(2))
						require.NoError(t, err)
						defer e.Exit()
					}
					if row.trip {
						failed := errors.New("x")
						if row.asks {
							failed = api.Overloaded(failed, time.Minute)
						}
						require.NoError(t, g.Do(t.Context(), "orders", func(context.Context) error { return nil }, api.Endpoint("another")))
						require.ErrorIs(t, g.Do(t.Context(), "orders", func(context.Context) error { return failed }, api.Endpoint("x")), failed)
					}
					e, err := g.Entry(t.Context(), "orders", api.Inbound(), api.Args("x"), api.Endpoint("x"))
					e.Exit()
					assert.Equal(t, mode == spec.Enforce, errors.Is(err, core.ErrBlocked))
				}
				refuse()
				want := figuresOf(g)
				assert.True(t, want.Asked)
				assert.EqualValues(t, 1, want.Refused+want.ShadowBlocked)

				clock.Advance(48 * time.Hour)
				for _, name := range []string{"one", "two", "three"} {
					e, err := g.Entry(t.Context(), name)
					require.NoError(t, err)
					e.Exit()
				}
				_, there := g.Engine().FindResource("orders")
				require.False(t, there, "it has left for another")
				for range 3 {
					runtime.GC() // and is evicted
				}
				for _, during := range []spec.Mode{mode, spec.Off, mode} {
					require.NoError(t, g.LoadRules(byExpression(row.set, field.Name, during)))
					got := figuresOf(g)
					assert.Equal(t, during != spec.Off, got.Asked)
					assert.Equal(t, want.Refused, got.Refused)
					assert.Equal(t, want.ShadowBlocked, got.ShadowBlocked)
				}
				refuse()
				got := figuresOf(g)
				assert.EqualValues(t, 2, got.Refused+got.ShadowBlocked)
			})
		}
	}
}

// byExpression returns a set with the only rule of one family, in a mode, matching orders by an
// expression: so it pins no resource.
func byExpression(set rules.Set, family string, mode spec.Mode) rules.Set {
	given := reflect.ValueOf(set).FieldByName(family)
	list := reflect.MakeSlice(given.Type(), 1, 1)
	rule := list.Index(0)
	rule.Set(given.Index(0))
	rule.FieldByName("Mode").Set(reflect.ValueOf(mode))
	if resource := rule.FieldByName("Resource"); resource.IsValid() {
		resource.SetString("orders|carts")
		rule.FieldByName("Match").Set(reflect.ValueOf(spec.MatchRegex))
	}
	reflect.ValueOf(&set).Elem().FieldByName(family).Set(list)
	return set
}

// figuresOf returns the stats of the only rule.
func figuresOf(g *api.Guard) core.RuleStats { return g.Engine().Rules().RuleStats()[0] }
