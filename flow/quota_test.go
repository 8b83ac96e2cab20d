package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// The clock of these tests starts on Tuesday, November 14, 2023, at 22:13:20 UTC.
const midnight = 106*time.Minute + 40*time.Second

func daily(threshold float64) flow.Rule {
	return flow.Rule{ID: "r", Resource: "orders", Threshold: threshold, Per: spec.PerDay}
}

func TestQuota(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	for _, tt := range []struct {
		name   string
		rules  []flow.Rule
		script []step
	}{
		{"a day", []flow.Rule{daily(3)}, []step{
			{0, "orders", 5, "pass x3, block x2"},
			{midnight - 1, "orders", 1, "block"},
			{midnight, "orders", 4, "pass x3, block"},
			{midnight + day, "orders", 4, "pass x3, block"},
			{midnight + 9*day, "orders x2", 2, "pass, block"},
			{midnight + 9*day, "orders", 2, "pass, block"},
		}},
		{"a day from six in Tokyo", []flow.Rule{{ID: "r", Resource: "orders", Threshold: 1, Per: spec.PerDay, Timezone: "Asia/Tokyo", Starts: "06:00"}}, []step{
			{0, "orders", 2, "pass, block"}, // 07:13 there
			{midnight + 21*hour - 1, "orders", 1, "block"},
			{midnight + 21*hour, "orders", 2, "pass, block"},
		}},
		{"a week", []flow.Rule{{ID: "r", Resource: "orders", Threshold: 1, Per: spec.PerWeek}}, []step{
			{0, "orders", 2, "pass, block"},
			{midnight + 5*day - 1, "orders", 1, "block"},
			{midnight + 5*day, "orders", 2, "pass, block"},
		}},
		{"a month", []flow.Rule{{ID: "r", Resource: "orders", Threshold: 1, Per: spec.PerMonth}}, []step{
			{0, "orders", 2, "pass, block"},
			{midnight + 16*day - 1, "orders", 1, "block"},
			{midnight + 16*day, "orders", 2, "pass, block"},
			{midnight + 47*day - 1, "orders", 1, "block"},
			{midnight + 47*day, "orders", 2, "pass, block"},
		}},
		{"beside a rate", []flow.Rule{daily(3), {Resource: "orders", Threshold: 2}}, []step{
			{0, "orders", 3, "pass x2, block"}, // refused by the rate: it doesn't count
			{2 * time.Second, "orders", 2, "pass, block"},
		}},
		{"a caller", []flow.Rule{{Resource: "orders", Threshold: 1, Per: spec.PerDay, Origin: "app"}}, []step{
			{0, "orders", 2, "pass x2"},
			{0, "orders from app", 2, "pass, block"},
			{0, "orders from web", 1, "pass"},
		}},
		{"a chain", []flow.Rule{{Resource: "orders", Threshold: 1, Per: spec.PerDay, Relation: flow.Chain, Ref: "web"}}, []step{
			{0, "orders", 2, "pass x2"},
			{0, "orders in web", 2, "pass, block"},
		}},
		{"together", []flow.Rule{{Resource: "a*", Match: spec.MatchPrefix, Together: true, Threshold: 2, Per: spec.PerDay}}, []step{
			{0, "a1", 1, "pass"},
			{0, "a2", 2, "pass, block"},
			{midnight, "a1", 1, "pass"},
		}},
		{"fractions are rounded down", []flow.Rule{daily(1.5)}, []step{{0, "orders", 2, "pass, block"}}},
		{"nothing", []flow.Rule{daily(0.5)}, []step{{0, "orders", 1, "block"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newGuard(t, tt.rules...).run(tt.script)
		})
	}
}

// A reload keeps what was used: a raised limit frees room at once, and another calendar frees
// nothing before its first boundary.
func TestQuotaAfterAReload(t *testing.T) {
	g := newGuard(t, daily(3))
	assert.Equal(t, 3, g.passes(5, "orders"))
	g.load(daily(5))
	assert.Equal(t, 2, g.passes(5, "orders"))
	g.load(daily(2))
	assert.Equal(t, 0, g.passes(5, "orders"))

	tokyo := daily(7) // midnight there is 15:00 UTC
	tokyo.Timezone = "Asia/Tokyo"
	g.load(tokyo)
	assert.Equal(t, 2, g.passes(5, "orders"))
	g.at(midnight + 15*time.Hour - 1)
	assert.Equal(t, 0, g.passes(5, "orders"))
	g.at(midnight + 15*time.Hour)
	assert.Equal(t, 7, g.passes(9, "orders"))

	g.load(flow.Rule{ID: "r", Resource: "orders", Threshold: 100})
	assert.Equal(t, 9, g.passes(9, "orders"), "a window counts anew")
	off := daily(9)
	off.Mode = spec.Off
	g.load(off)
	g.load(daily(9))
	assert.Equal(t, 2, g.passes(9, "orders"), "what the quota admitted counts")
}

func TestQuotaOfCosts(t *testing.T) {
	rule := daily(100)
	rule.Unit, rule.MaxOverdraft = "tokens", 0.5
	g := newGuard(t, rule)
	enter := func(n int64) (engine.Entry, error) {
		return g.Enter(t.Context(), "orders", []engine.Option{engine.Cost("tokens", n)})
	}
	used := func() float64 { return figures(g).Quotas[0].Measure.Measured }
	e, err := enter(60)
	require.NoError(t, err)
	_, err = enter(60)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, midnight, comeAgain(t, block))
	e.Settle("tokens", 20)
	e.Exit()
	assert.InDelta(t, 20, used(), 0)

	e, err = enter(60)
	require.NoError(t, err)
	e.Settle("tokens", 1000)
	assert.InDelta(t, 150, used(), 0, "the limit and half of it")
	e.Exit()
	_, err = enter(1000)
	require.ErrorAs(t, err, &block)
	assertNobodyKnows(t, block, "more than the limit")

	g.at(midnight)
	e, err = enter(60)
	require.NoError(t, err)
	g.at(midnight + 24*time.Hour)
	e2, err := enter(60)
	require.NoError(t, err)
	e.Settle("tokens", 90) // of the day before
	assert.InDelta(t, 60, used(), 0)
	e.Exit()
	e2.Settle("tokens", 10)
	e2.Exit()
	assert.InDelta(t, 10, used(), 0)
}

func figures(g *guard) core.Quotas {
	return trial.Figures(g.t, g.Engine, "r").Details.(core.Quotas)
}

func TestQuotaSaysWhenToReturn(t *testing.T) {
	rule := daily(2)
	rule.Timezone = "America/New_York"
	g := newGuard(t, rule)
	g.at(midnight) // 19:00 in New York
	e, err := g.enter("orders")
	require.NoError(t, err)
	r, known := e.Remaining("")
	assert.True(t, known)
	assert.Equal(t, core.Remaining{Kind: core.KindFlow, Rule: "r", Left: 1, Limit: 2, Window: 24 * time.Hour, Resets: 5 * time.Hour}, r)
	e.Exit()
	require.Equal(t, "pass", g.outcome("orders"))
	_, err = g.enter("orders")
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, 5*time.Hour, comeAgain(t, block))
	window, _ := block.Window()
	assert.Equal(t, 24*time.Hour, window)

	x, err := g.Explain(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.Equal(t, time.Date(2023, 11, 15, 5, 0, 0, 0, time.UTC), x.Next)
	assert.Equal(t, "units per day", x.Rules[0].Measures[0].Of)
	f := figures(g)
	assert.Equal(t, []string{"orders has used 2 of 2 units per day, until 2023-11-15 05:00 UTC"}, f.Lines(start))
	assert.Len(t, f.Measures(), 1)
	assert.Nil(t, f.Resources())
	g.at(midnight + 5*time.Hour)
	assert.Nil(t, figures(g).Lines(start))
	x, err = g.Explain(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, core.Passes, x.Outcome)
}

// A resource whose quota is in use is not dropped, however long it has been idle.
func TestQuotaOfAnIdleResource(t *testing.T) {
	rule := flow.Rule{ID: "r", Resource: "*", Threshold: 1, Per: spec.PerDay}
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1}}, rule)
	assert.Equal(t, "pass", g.outcome("a"))
	g.at(time.Hour)
	assert.Equal(t, "pass", g.outcome("b"), "on the overflow resource")
	assert.Equal(t, "block", g.outcome("c"), "likewise")
	assert.Equal(t, "block", g.outcome("a"))
	g.at(midnight + time.Hour)
	assert.Equal(t, "pass", g.outcome("d"), "in the place of a")
	assert.Equal(t, "pass", g.outcome("a"))
}

func TestQuotaAllocatesNothing(t *testing.T) {
	g := newGuard(t, daily(150))
	race.AllocatesNothing(t, 300, func() { // half of them are refused
		e, _ := g.Enter(t.Context(), "orders", nil)
		e.Exit()
	})
}

// A quota reports each share once a period.
func TestQuotaNotices(t *testing.T) {
	g := newGuard(t, flow.Rule{ID: "r", Resource: "orders", Threshold: 10, Per: spec.PerDay, Notify: []string{"80%", "100%"}})
	midnight := start.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(start)
	var got []string
	g.OnNotice(func(n core.Notice) {
		got = append(got, fmt.Sprint(n.At.Sub(start)-midnight, " ", n.Percent, "% ", n.Used, " of ", n.Limit, " in ", n.Interval))
	})
	for _, day := range []time.Duration{0, 24 * time.Hour} {
		g.at(midnight + day)
		g.passes(9, "orders")
		g.at(midnight + day + 2*time.Hour)
		g.passes(9, "orders")
	}
	require.NoError(t, g.Close())
	assert.Equal(t, []string{
		"0s 80% 8 of 10 in 24h0m0s", "2h0m0s 100% 10 of 10 in 24h0m0s", "24h0m0s 80% 8 of 10 in 24h0m0s", "26h0m0s 100% 10 of 10 in 24h0m0s",
	}, got)
}

// Notices of a quota are those of its periods, also when the calendar changes. known bug 300
func TestQuotaNoticesInAnotherCalendar(t *testing.T) {
	count := func(first, then spec.Per, zone string, days int) (notices int) {
		r := flow.Rule{ID: "r", Resource: "orders", Threshold: 1, Per: first, Notify: []string{"100%"}}
		g := newGuard(t, r)
		g.OnNotice(func(core.Notice) { notices++ })
		noon := start.UTC().Truncate(24 * time.Hour).Add(36 * time.Hour).Sub(start)
		g.at(noon)
		g.passes(1, "orders")
		r.Per, r.Timezone = then, zone
		g.load(r)
		for day := range days {
			g.at(noon + time.Duration(day+1)*24*time.Hour)
			g.passes(1, "orders")
		}
		if days == 0 {
			g.at(noon + 13*time.Hour) // the old period is over, the new one begins at eight
			g.passes(1, "orders")
		}
		require.NoError(t, g.Close())
		return notices
	}
	assert.Equal(t, 1, count(spec.PerDay, spec.PerDay, "America/Los_Angeles", 0))
	assert.Equal(t, 6, count(spec.PerMonth, spec.PerDay, "", 5))
}
