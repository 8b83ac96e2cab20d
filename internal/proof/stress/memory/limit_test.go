package memory

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/figure"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// full holds caps low enough that a few calls reach them.
var full = node.Caps{Resources: 2, Contexts: 2, Calls: 2, Origins: 2}

// fillUp fills every cap, and keeps it full until the test ends.
func (g *guard) fillUp(t *testing.T) {
	for i := range 2 {
		e, err := g.enter("full"+strconv.Itoa(i), "full"+strconv.Itoa(i), "full"+strconv.Itoa(i))
		require.NoError(t, err)
		t.Cleanup(e.Exit)
	}
	require.Equal(t, [4]int{2, 2, 2, 2}, g.used())
}

// known bug 107: under every kind of limit, names that share the overflow share its limit, and can
// use all of it.
func TestOverflowKeepsEveryKindOfLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		rule flow.Rule
		want int
	}{
		{"reject", flow.Rule{Threshold: 7}, 7},
		{"strict", flow.Rule{Threshold: 7, Window: flow.Strict}, 7},
		{"nothing", flow.Rule{}, 0},
		{"concurrency", flow.Rule{Threshold: 7, Metric: flow.Concurrency}, 7},
		{"throttle", flow.Rule{Threshold: 10, Behavior: flow.Throttle, MaxWait: 500 * time.Millisecond}, 6},
		{"warm-up, cold", flow.Rule{Threshold: 30, Behavior: flow.WarmUp, WarmUpPeriod: 10 * time.Second}, 10},
	} {
		names := size(200, 2_000, 100_000, 100_000)
		flood := func(t *testing.T, g *guard, enter func(name string) (api.Admitted, error)) {
			admitted := 0
			for i := range names {
				e, err := enter(nameOf(i))
				defer e.Exit()
				if err == nil {
					admitted++
				}
			}
			assert.Equal(t, c.want, admitted, "of %d names", names)
			figure.Report(t, figure.Figure{Name: "admitted beyond the limit of an overflow, " + t.Name(), Value: float64(max(0, admitted-c.want)), N: int64(names)})
		}
		t.Run(c.name+", a pattern", func(t *testing.T) {
			rule := c.rule
			rule.Resource, rule.Match = "name.*", spec.MatchRegex
			g := newGuard(t, api.Config{Caps: full}, rule)
			g.fillUp(t)
			flood(t, g, func(name string) (api.Admitted, error) { return g.enter("", "", name) })
			assert.EqualValues(t, names, total(&g.overflow().Counters), "all were counted")
		})
		t.Run(c.name+", other callers", func(t *testing.T) {
			rule := c.rule
			rule.Resource, rule.Origin = "known", flow.OriginOther
			g := newGuard(t, api.Config{Caps: full}, rule)
			g.fillUp(t)
			flood(t, g, func(name string) (api.Admitted, error) { return g.enter("", name, "known") })
			assert.EqualValues(t, names, total(&g.find(t, "known").OverflowOrigin().Counters), "all were counted")
		})
	}
}

// total returns the units that asked, since the start.
func total(c *stat.Counters) int64 {
	all := c.Totals()
	return all.Total()
}

// Names in rules have their nodes and their whole limit, even if the caps are full.
func TestWhatRulesNameIsBesideTheCaps(t *testing.T) {
	g := newGuard(t, api.Config{Caps: full},
		flow.Rule{ID: "name", Resource: "vip", Threshold: 9, Window: flow.Ring},
		flow.Rule{ID: "origin", Resource: "vip", Origin: "partner", Threshold: 3, Window: flow.Ring},
		flow.Rule{ID: "others", Resource: "vip", Origin: flow.OriginOther, Threshold: 4, Window: flow.Ring},
		flow.Rule{ID: "context", Resource: "vip", Relation: flow.Chain, Ref: "batch", Threshold: 5, Window: flow.Ring},
		flow.Rule{ID: "overflow", Resource: node.OverflowName, Threshold: 2, Window: flow.Ring},
	)
	g.fillUp(t)
	rounds := size(2, 20, 200, 200)
	for range rounds {
		g.clock.Advance(time.Second)
		got := make(map[string]int)
		for i := range 40 { // the flood comes first each time
			for who, c := range map[string][3]string{
				"the overflow": {"", "", nameOf(i)},
				"others":       {nameOf(i), nameOf(i), "vip"},
			} {
				if g.call(c[0], c[1], c[2]) {
					got[who]++
				}
			}
		}
		for range 40 {
			if g.call("", "partner", "vip") {
				got["partner"]++
			}
		}
		require.Equal(t, map[string]int{"the overflow": 2, "others": 4, "partner": 3}, got)
		require.True(t, g.call("", "", "vip"))

		g.clock.Advance(time.Second)
		for i := range 40 {
			g.call(nameOf(i), nameOf(i), "vip") // admits 4
			if g.call("batch", "", "vip") {
				got["batch"]++
			}
		}
		require.Equal(t, 5, got["batch"], "calls in other contexts don't count there")
	}
	vip := g.find(t, "vip")
	calls := int64(rounds * 161)
	require.Equal(t, calls, total(&vip.Counters))
	partner, ok := vip.Origins().Find("partner")
	require.True(t, ok)
	require.EqualValues(t, rounds*40, total(&partner.Counters))
	batch, ok := vip.Calls().Find("batch")
	require.True(t, ok, "the rule names the context for this resource")
	require.EqualValues(t, rounds*40, total(&batch.Counters))
	require.Equal(t, [4]int{2, 2, 2, 2}, g.used())
	figure.Report(t, figure.Figure{Name: "calls of names in rules that were counted elsewhere", Value: float64(calls - total(&vip.Counters)), N: calls})
}
