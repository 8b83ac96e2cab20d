package isolation_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
)

func TestPermits(t *testing.T) {
	g := newGuard(t, permits(3))
	a, b := g.enter(), g.enter(engine.Units(2))
	g.refused()
	g.clock.Advance(time.Hour)
	g.refused()
	b.Exit()
	b.Exit() // the second exit does nothing
	g.refused(engine.Units(3))
	g.enter(engine.Units(2)).Exit()
	a.Exit()
	g.enter(engine.Units(3)).Exit()
	g.refused(engine.Units(4))
	assert.EqualValues(t, 4, g.figures("permits").Refused)
}

// The largest possible batch is refused, both when the limit is full and when it is not.
// known bug 34
func TestHugeBatches(t *testing.T) {
	for _, rule := range []isolation.Rule{permits(1), queued(1, 5, time.Second)} {
		g := newGuard(t, rule)
		e := g.enter()
		for range 2 {
			g.refused(engine.Units(2))
			g.refused(engine.Units(1 << 20))
			for _, n := range []uint32{1<<20 + 1, math.MaxInt32, math.MaxUint32} {
				if int64(int(n)) != int64(n) { // on 32 bits
					continue
				}
				_, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Units(int(n))})
				require.ErrorIs(t, err, core.ErrInvalid)
			}
			e.Exit()
		}
		g.enter().Exit()
	}
}

func TestThresholdZero(t *testing.T) {
	g := newGuard(t, permits(0))
	g.refused()
	g.refused(engine.Prioritized())
}

// Of several rules the strictest decides, regardless of their order.
func TestSeveralRules(t *testing.T) {
	wide := isolation.Rule{ID: "wide", Resource: "ord.*", Match: spec.MatchRegex, Threshold: 5, MaxQueue: 3, MaxWait: time.Second}
	for _, rules := range [][]isolation.Rule{{permits(2), wide}, {wide, permits(2)}} {
		g := newGuard(t, rules...)
		a, b := g.enter(), g.enter()
		g.refused()
		assert.EqualValues(t, 1, g.figures("permits").Refused)
		a.Exit()
		b.Exit()
	}
	same := permits(2)
	same.ID, same.MaxQueue, same.MaxWait = "line", 1, time.Second
	g := newGuard(t, same, permits(2))
	a := g.enter(engine.Units(2))
	g.refused()
	a.Exit()
}

// A call that a flow rule refuses takes no permit, and a call that isolation refuses leaves the flow
// rule's window unchanged.
func TestBesideFlowRules(t *testing.T) {
	g := newGuard(t)
	rate := flow.Rule{ID: "rate", Resource: "orders", Threshold: 3, Interval: time.Hour}
	g.loadWith([]flow.Rule{rate}, permits(1))
	a := g.enter()
	for range 5 {
		g.refused()
	}
	a.Exit()
	g.enter().Exit()
	b := g.enter()
	_, err := g.Enter(t.Context(), "orders", nil)
	assert.Equal(t, core.KindFlow, core.KindOf(err))
	b.Exit()
	assert.EqualValues(t, 5, g.figures("permits").Refused)
}

// Each resource that an expression matches has its own limit. Beyond the cap on resources, the
// matching calls share one limit, and no call waits there.
func TestRegexAndOverflow(t *testing.T) {
	rule := isolation.Rule{ID: "api", Resource: "/api/.*", Match: spec.MatchRegex, Threshold: 1, MaxQueue: 5, MaxWait: time.Second}
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 2}}, rule)
	ctx := context.Background()
	open := func(name string) (engine.Entry, error) { return g.Enter(ctx, name, nil) }
	var entries []engine.Entry
	for _, name := range []string{"/api/a", "/api/b", "/api/c", "other"} {
		e, err := open(name)
		require.NoError(t, err, name)
		entries = append(entries, e)
	}
	_, err := open("/api/d") // shares the overflow with c
	require.ErrorIs(t, err, core.ErrBlocked)
	e, err := open("another")
	require.NoError(t, err)
	for _, e := range append(entries, e) {
		e.Exit()
	}
	e, err = open("/api/d")
	require.NoError(t, err)
	e.Exit()
}

// known bug 72
func TestRenamedBeyondTheCap(t *testing.T) {
	trial.BeyondTheCap(t, func(b *engine.SnapshotBuilder, limits []trial.Limit) error {
		var rules []isolation.Rule
		for _, l := range limits {
			rules = append(rules, isolation.Rule{ID: l.ID, Resource: l.Resource, Match: spec.MatchRegex, Threshold: l.Units, Mode: l.Mode})
		}
		return isolation.Compile(b, rules)
	})
}

// A rule of another family with the same ID has its own permits.
func TestSameIDInAnotherFamily(t *testing.T) {
	g := newGuard(t)
	g.loadWith([]flow.Rule{{ID: "r", Resource: "orders", Metric: flow.Concurrency, Threshold: 2, Mode: spec.Shadow}},
		isolation.Rule{ID: "r", Resource: "orders", Threshold: 2, Mode: spec.Shadow})
	a, b := g.enter(), g.enter()
	for _, f := range g.Rules().RuleStats() {
		assert.Zero(t, f.ShadowBlocked, "%v", f.Kind)
	}
	a.Exit()
	b.Exit()
}

// Calls in flight when a rule is loaded count against it until they end.
// known bug 64
func TestRuleMeetsCallsInFlight(t *testing.T) {
	g := newGuard(t)
	early := g.enter(engine.Units(2))
	g.load(permits(3))
	late := g.enter()
	g.refused()
	g.load()
	g.load(permits(3)) // another semaphore
	g.refused()
	early.Exit()
	g.enter(engine.Units(2)).Exit()
	g.refused(engine.Units(3))
	late.Exit()
	g.enter(engine.Units(3)).Exit()
}

// A lower limit takes nothing from running calls, and a rule that is removed and added again still
// counts them.
// known bug 64
func TestLimitChangesUnderCalls(t *testing.T) {
	g := newGuard(t, permits(4))
	entries := []engine.Entry{g.enter(), g.enter(), g.enter()}
	g.load(permits(1))
	g.refused()
	off := permits(1)
	off.Mode = spec.Off
	g.load(off)
	entries = append(entries, g.enter())
	g.load(permits(4))
	g.refused()
	for i, e := range entries {
		e.Exit()
		e = g.enter(engine.Units(i + 1))
		g.refused()
		e.Exit()
	}
}

func TestShadowCountsWhatItWouldRefuse(t *testing.T) {
	shadow := isolation.Rule{ID: "try", Resource: "orders", Threshold: 1, Mode: spec.Shadow}
	g := newGuard(t, shadow)
	a, b := g.enter(), g.enter()
	assert.EqualValues(t, 1, g.figures("try").ShadowBlocked)
	b.Exit()
	c := g.enter()
	a.Exit()
	c.Exit()
	d := g.enter()
	assert.EqualValues(t, 2, g.figures("try").ShadowBlocked)
	d.Exit()
	assert.Zero(t, g.figures("try").Refused)
}

// In shadow mode no call waits: a call that would wait is queued while it runs, and counts as
// refused if the queue is full or its time in the queue has expired.
func TestShadowOfALine(t *testing.T) {
	shadow := isolation.Rule{ID: "try", Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Second, Mode: spec.Shadow}
	g := newGuard(t, shadow)
	shadowBlocked := func() int64 { return g.figures("try").ShadowBlocked }
	a, b := g.enter(), g.enter()
	assert.Zero(t, shadowBlocked(), "it would wait")
	c := g.enter()
	assert.EqualValues(t, 1, shadowBlocked(), "the queue is full")
	a.Exit() // b has its permit
	d := g.enter()
	assert.EqualValues(t, 1, shadowBlocked(), "queued behind b")
	g.clock.Advance(time.Second)
	e := g.enter()
	assert.EqualValues(t, 2, shadowBlocked(), "d waits for a second, which it may; the queue is full")
	g.clock.Advance(1)
	f := g.enter()
	assert.EqualValues(t, 3, shadowBlocked(), "d would have been refused, f is in the queue")
	for _, entry := range []engine.Entry{b, c, d, e, f} {
		entry.Exit()
	}
	g.enter().Exit()
	assert.EqualValues(t, 3, shadowBlocked())
	assert.Zero(t, g.queued())
	assert.Empty(t, g.clock.Slept())
}

// The first call under a shadow rule with another limit finds the queue as the new limit leaves it,
// not the old one.
// known bug 231
func TestShadowOfALineWithAnotherLimit(t *testing.T) {
	shadow := isolation.Rule{ID: "try", Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Second, Mode: spec.Shadow}
	g := newGuard(t, shadow)
	defer g.enter().Exit()
	defer g.enter().Exit() // in the queue
	shadow.Threshold = 3
	g.load(shadow)
	defer g.enter().Exit()
	assert.Zero(t, g.figures("try").ShadowBlocked, "three run, as may")
}

// RetryAfter is unknown, since nobody knows when a call exits.
func TestRetryAfter(t *testing.T) {
	g := newGuard(t, isolation.Rule{Resource: "orders", Threshold: 1, MaxQueue: 1, MaxWait: time.Second})
	open, err := g.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	_, err = g.Enter(t.Context(), "orders", []engine.Option{engine.Units(2)})
	block, ok := errors.AsType[*core.BlockError](err)
	require.True(t, ok)
	_, known := block.RetryAfter()
	assert.False(t, known)
	limit, known := block.Limit()
	assert.True(t, known)
	assert.EqualValues(t, 1, limit)
	open.Exit()
}
