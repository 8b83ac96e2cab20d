package isolation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

func by(tenant any) engine.Option { return engine.Param("tenant", tenant) }

func sharing(s spec.Share) isolation.Rule {
	r := queued(1, 5, time.Second)
	r.Share = s
	return r
}

var byTenant = spec.Share{By: "param tenant"}

// Calls of tenants take turns, although one tenant came first with all of its calls.
func TestSharesTakeTurns(t *testing.T) {
	g := newGuard(t, sharing(byTenant))
	e := g.enter(by("a"))
	var all []*call
	for _, name := range []string{"a1", "a2", "a3", "b1", "b2"} {
		all = append(all, g.waits(name, by(name[:1])))
	}
	g.clock.Advance(ms)
	e.Exit()
	byName := func(name string) *call { return all[map[string]int{"a1": 0, "a2": 1, "a3": 2, "b1": 3, "b2": 4}[name]] }
	for n := range all {
		require.Eventually(t, func() bool { return len(g.order()) > n }, time.Minute, time.Microsecond)
		byName(g.order()[n]).exit()
	}
	assert.Equal(t, "b1", g.order()[0])
	assert.Equal(t, "a3", g.order()[4])
}

// A full queue displaces the newest call of the tenant with the most waiting, whose refusal says so.
func TestDisplaced(t *testing.T) {
	r := sharing(byTenant)
	r.MaxQueue = 2
	g := newGuard(t, r)
	e := g.enter(by("a"))
	first, second := g.waits("first", by("a")), g.waits("second", by("a"))
	g.refused(by("a"))
	other := g.displaces(second, "other", by("b"))
	require.ErrorIs(t, second.err, core.ErrBlocked)
	assert.EqualError(t, second.err, `penstock: isolation rule "permits" blocked "orders": the queue was full, and a call of another tenant, a higher level or a higher priority took its place`)
	block, ok := errors.AsType[*core.BlockError](second.err)
	assert.True(t, ok && block.Rule == "permits")
	stats, ok := g.figures("permits").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, []string{
		"share a: holds 1 of 0.5, 1 queued, 1 served, 1 refused, 1 displaced",
		"share b: holds 0 of 0.5, 1 queued, 0 served",
	}, stats.Lines(start))
	text, err := json.Marshal(stats)
	require.NoError(t, err)
	assert.Contains(t, string(text), `{"shares":2,"top":[{"resource":"orders","share":"a","weight":1,"part":0.5,"held":1,"queued":1,"served":1,"refused":1,"displaced":1,"expired":0}`)
	g.clock.Advance(ms)
	e.Exit()
	other.exit()
	first.exit()
	assert.Zero(t, g.queued())
}

// Explain names the place in the share, and what the share holds.
func TestExplainShares(t *testing.T) {
	g := newGuard(t, sharing(spec.Share{By: "param tenant", WeightBy: "param plan", Weights: map[string]int{"7": 4}, PerShareQueue: 2}))
	explain := func(opts ...engine.Option) core.ExplainedRule {
		x, err := g.Explain(t.Context(), "orders", opts)
		require.NoError(t, err)
		return x.Rules[0]
	}
	assert.Equal(t, core.Passes, explain(by("a")).Outcome)
	e := g.enter(by("a"), engine.Param("plan", 7))
	c := g.waits("c", by("a"), engine.Param("plan", 7))
	x := explain(by("a"), engine.Param("plan", 7))
	assert.Equal(t, core.Waits, x.Outcome)
	assert.Equal(t, "2nd of 2 in its share", x.Why)
	assert.Equal(t, core.Measure{Of: "units of its share", For: "a", Measured: 1, Limit: 1}, x.Measures[len(x.Measures)-1])
	x = explain(by("b"))
	assert.Equal(t, "1st of 1 in its share", x.Why)
	assert.Equal(t, core.Measure{Of: "units of its share", For: "b", Measured: 0, Limit: 0.2}, x.Measures[len(x.Measures)-1])
	d := g.waits("d", by("a"), engine.Param("plan", 7))
	assert.Equal(t, core.Refused, explain(by("a")).Outcome)
	e.Exit()
	c.exit()
	d.exit()
}

// Rules that begin to share, share otherwise or no longer share keep the calls that hold permits or
// wait, and the limit.
func TestSharesThroughReloads(t *testing.T) {
	g := newGuard(t, queued(2, 9, time.Second))
	before := g.enter(by("a"))
	var all []*call
	var open []engine.Entry
	open = append(open, g.enter(by("b")))
	for i, r := range []isolation.Rule{sharing(byTenant), sharing(spec.Share{By: "origin"}), queued(2, 9, time.Second), sharing(byTenant)} {
		all = append(all, g.waits(fmt.Sprint(i), by(i)))
		r.Threshold, r.MaxQueue, r.Share.PerShareQueue = 2, 9, 0
		g.load(r)
	}
	all = append(all, g.waits("last", by("a")))
	assert.EqualValues(t, len(all), g.queued())
	before.Exit()
	open[0].Exit()
	for _, c := range all {
		c.exit()
	}
	g.load()
	g.enter().Exit()
	assert.Zero(t, g.queued())
}

// A call that runs at once, or is refused, allocates nothing.
func TestSharesAllocateNothing(t *testing.T) {
	g := newGuard(t, sharing(spec.Share{By: "param tenant", WeightBy: "origin", Weights: map[string]int{"gold": 4}}))
	opts := []engine.Option{by("a")}
	race.AllocatesNothing(t, 100, func() {
		e, err := g.Enter(t.Context(), "orders", opts)
		if err != nil {
			t.Error(err)
		}
		e.Exit()
	})
	r := sharing(byTenant)
	r.MaxQueue = 1
	g = newGuard(t, r)
	e := g.enter(opts...)
	waits := g.waits("a", opts...)
	race.AllocatesNothing(t, 100, func() {
		if _, err := g.Enter(t.Context(), "orders", opts); err == nil {
			t.Error("it should be refused")
		}
	})
	e.Exit()
	waits.exit()
}

// In shadow mode calls that would wait stay in their tenant's queue, and refusals are counted.
func TestSharesInShadowMode(t *testing.T) {
	r := sharing(byTenant)
	r.Mode, r.MaxQueue = spec.Shadow, 1
	g := newGuard(t, r)
	open := []engine.Entry{g.enter(by("a")), g.enter(by("a")), g.enter(by("a"))}
	assert.EqualValues(t, 1, g.figures("permits").ShadowBlocked)
	for _, e := range open {
		e.Exit()
	}
	g.enter(by("b")).Exit()
	assert.EqualValues(t, 1, g.figures("permits").ShadowBlocked)
}

// The units are given back even if the clock panics, or ends the goroutine, as the call exits.
func TestSharesWhenTheClockPanics(t *testing.T) {
	clock := &badClock{}
	g, err := engine.NewEngine(engine.Config{Clock: clock, Chain: trial.Chain(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		return isolation.Compile(b, []isolation.Rule{sharing(byTenant)})
	}))
	for _, bad := range []func(){nil, func() { panic("bad clock") }, runtime.Goexit, nil} {
		e, err := g.Enter(t.Context(), "orders", []engine.Option{by("a")})
		require.NoError(t, err)
		clock.bad = bad
		over := make(chan struct{})
		go func() {
			defer close(over)
			e.Exit()
		}()
		<-over
		clock.bad = nil
	}
}

// badClock panics, or ends the goroutine.
type badClock struct{ bad func() }

func (c *badClock) Now() int64 {
	if c.bad != nil {
		c.bad()
	}
	return start.UnixNano()
}

func (c *badClock) Sleep(context.Context, time.Duration) error { return nil }

// Tenants with weights of their own take no room from the others.
// known bug 278
func TestWeightsTakeNoRoomOfOthers(t *testing.T) {
	r := sharing(spec.Share{By: "param tenant", Weights: map[string]int{"acme": 4}, MaxShares: 1})
	g := newGuard(t, r)
	e := g.enter(by("acme"))
	other := g.waits("other", by("other"))
	stats, ok := g.figures("permits").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, []string{"share acme: holds 1 of 0.8, 0 queued, 1 served", "share other: holds 0 of 0.2, 1 queued, 0 served"}, stats.Lines(start))
	r.Share.Weights = map[string]int{"other": 4}
	g.load(r)
	e.Exit()
	other.exit()
	r.Share.By, r.Share.Weights = "origin", nil
	g.load(r)
	g.enter(by("last")).Exit()
}

// A tenant whose calls were all refused has no share, but they count.
// known bug 279
func TestRefusalsOfTenantsWithoutShareCount(t *testing.T) {
	r := sharing(byTenant)
	r.MaxQueue = 1
	g := newGuard(t, r)
	e := g.enter(by("a"))
	waits := g.waits("b", by("b"))
	g.refused(by("c"))
	stats, ok := g.figures("permits").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, core.ShareStats{Refused: 1}, stats.Rest)
	e.Exit()
	waits.exit()
}

// In shadow mode, a call that would have lost its place to another tenant's counts as refused.
// known bug 280
func TestDisplacedInShadowMode(t *testing.T) {
	r := sharing(byTenant)
	r.Mode, r.MaxQueue = spec.Shadow, 2
	g := newGuard(t, r)
	open := []engine.Entry{g.enter(by("a")), g.enter(by("a")), g.enter(by("a")), g.enter(by("b"))}
	assert.EqualValues(t, 1, g.figures("permits").ShadowBlocked)
	for _, e := range open {
		e.Exit()
	}
	assert.EqualValues(t, 1, g.figures("permits").ShadowBlocked)
}

// Of several names for a number, the usual one decides.
// known bug 282
func TestWeightOfANumber(t *testing.T) {
	for range 20 {
		g := newGuard(t, sharing(spec.Share{By: "param tenant", Weights: map[string]int{"7": 4, "07": 2, "+7": 9}}))
		g.enter(by(7)).Exit()
		stats, ok := g.figures("permits").Details.(core.Shares)
		require.True(t, ok)
		require.EqualValues(t, 4, stats.Top[0].Weight)
	}
}

// While a large call waits for the rest of its units, Explain knows which calls run at once, which wait
// and which find their queue full.
// known bug 283
func TestExplainBesideALargeCall(t *testing.T) {
	r := sharing(spec.Share{By: "param tenant", PerShareQueue: 1})
	r.Threshold = 4
	g := newGuard(t, r)
	explain := func(opts ...engine.Option) core.Outcome {
		x, err := g.Explain(t.Context(), "orders", opts)
		require.NoError(t, err)
		return x.Rules[0].Outcome
	}
	open := []engine.Entry{g.enter(by("a"), engine.Units(3))}
	large := g.waits("large", by("a"), engine.Units(3))
	assert.Equal(t, core.Refused, explain(by("a")))
	g.refused(by("a"))
	assert.Equal(t, core.Passes, explain(by("b")))
	open = append(open, g.enter(by("b")))
	assert.Equal(t, core.Waits, explain(by("b")))
	open[0].Exit()
	large.exit()
	open[1].Exit()
}
