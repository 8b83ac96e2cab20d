package slots_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/slots"
)

// diary is a custom slot that plays every role, records its calls, and rejects the caller mallory.
type diary struct {
	log    []string
	panics string // the phase
}

func (d *diary) note(phase string, more ...string) {
	d.log = append(d.log, strings.Join(append([]string{phase}, more...), " "))
	if phase == d.panics {
		panic(phase)
	}
}

func (d *diary) Name() string         { return "diary" }
func (d *diary) Prepare(c slots.Call) { d.note("prepare", c.Resource()) }
func (d *diary) Ask(c slots.Call) slots.Verdict {
	d.note("ask")
	return slots.Verdict{}
}

func (d *diary) Take(c slots.Call) slots.Verdict {
	d.note("take")
	c.Hold(d, 2*c.Units())
	c.OnComplete(d, 7)
	if c.Origin() == "mallory" {
		return c.RefuseWith("unwanted", 403)
	}
	return slots.Verdict{}
}

func (d *diary) Recheck(slots.Call) slots.Verdict {
	d.note("recheck")
	return slots.Verdict{}
}
func (d *diary) Passed(c slots.Call) { d.note("passed", c.Took().String()) }
func (d *diary) Blocked(_ slots.Call, b *core.BlockError) {
	d.note("blocked", b.Kind.String(), b.Rule)
}
func (d *diary) Completed(c slots.Call) { d.note("completed", c.Took().String()) }
func (d *diary) GiveBack(units int64, now time.Time) {
	d.note("back", time.Duration(units).String(), now.UTC().Format("05.000"))
}

func (d *diary) Complete(_ slots.Call, token int64) {
	d.note("complete", time.Duration(token).String())
}

func kept(t *testing.T, d *diary) (*api.Guard, *api.ManualClock) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0).UTC())
	clock.SetSleep(api.SleepAdvance)
	g, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler), Chain: slots.Default().With(d, slots.After("flow"))})
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 10, Behavior: flow.Throttle}}}))
	return g, clock
}

// A custom slot is called in every role that it plays, and gets back the units that it granted.
func TestSlotOfOnesOwn(t *testing.T) {
	d := new(diary)
	g, clock := kept(t, d)
	assert.Same(t, d, g.Config().Chain.Slots()[8], "the chain shows the slot that it was given")
	for range 2 { // the second waits
		e, err := g.Entry(t.Context(), "orders")
		require.NoError(t, err)
		clock.Advance(30 * time.Millisecond)
		e.Exit()
	}
	assert.Equal(t, []string{
		"prepare orders", "ask", "take", "passed 0s", "back 2ns 20.000", "completed 30ms", "complete 7ns",
		"prepare orders", "ask", "take", "recheck", "passed 70ms", "back 2ns 20.100", "completed 100ms", "complete 7ns",
	}, d.log)

	d.log = nil
	_, err := g.Entry(api.WithOrigin(context.Background(), "mallory"), "carts", api.Units(3))
	assert.Equal(t, core.KindCustom, api.KindOf(err))
	assert.Equal(t, []string{"prepare carts", "ask", "take", "back 6ns 20.130", "blocked custom unwanted"}, d.log)
}

// A phase that panics is skipped; the slot's other phases and the call continue.
func TestSlotOfOnesOwnPanics(t *testing.T) {
	for _, phase := range []string{"prepare", "ask", "take", "recheck", "passed", "completed", "back", "complete"} {
		d := &diary{panics: phase}
		g, _ := kept(t, d)
		for range 2 {
			e, err := g.Entry(t.Context(), "orders")
			require.NoError(t, err)
			e.Exit()
		}
		assert.NotZero(t, g.Engine().Failures(), phase)
		assert.Zero(t, g.Tree().Inbound.InFlight, phase)
	}
}

// A slot can read the values that the caller passed.
func TestCallShowsWhatTheCallerGave(t *testing.T) {
	type key struct{}
	seen := false
	see := look{slots.AskOnly(func(c slots.Call) slots.Verdict {
		seen = true
		assert.Equal(t, []any{"GET /orders", "acme", "http", []any{1, "two"}, int64(4), true, true, true, "10.0.0.1:80"},
			[]any{c.Resource(), c.Origin(), c.ContextName(), c.Args(), c.Units(), c.Inbound(), c.Prioritized(), c.LongLived(), c.Endpoint()})
		assert.Equal(t, "here", c.Context().Value(key{}))
		user, ok := c.Param("user")
		assert.True(t, ok)
		assert.Equal(t, argument.Of("ann"), user)
		_, ok = c.Param("none")
		assert.False(t, ok)
		_, ok = c.Param("two")
		assert.False(t, ok)
		assert.Equal(t, time.Unix(1_700_000_000, 0), c.Now())
		assert.Less(t, c.Lane(), uint32(1<<16))
		assert.False(t, c.Failed())
		return slots.Verdict{}
	})}
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0)), Chain: slots.Default().With(see, slots.Before("flow"))})
	require.NoError(t, err)
	defer g.Close()
	ctx := api.WithOrigin(api.WithContext(context.WithValue(t.Context(), key{}, "here"), "http"), "acme")
	e, err := g.Entry(ctx, "GET /orders", api.Args(1, "two"), api.Units(4), api.Inbound(), api.Prioritized(), api.LongLived(),
		engine.Endpoint("10.0.0.1:80"), api.Param("user", "ann"), api.Param("two", 1), api.Param("two", 2))
	require.NoError(t, err)
	e.Exit()
	assert.True(t, seen)
}

type look struct{ slots.AskOnly }

func (look) Name() string { return "look" }

// A value that plays no role is not a slot.
func TestSlotWithoutARole(t *testing.T) {
	assert.PanicsWithValue(t, `penstock: slot "nameless" plays no role: give it a method of Preparer, Checker, Rechecker or one of the recorders`,
		func() { slots.NewChain(nameless{}) })
}

type nameless struct{}

func (nameless) Name() string { return "nameless" }
