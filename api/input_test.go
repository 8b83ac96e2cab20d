package api_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

func TestNoNameIsRefusedAndCountedNowhere(t *testing.T) {
	g := newGuard(t, api.Config{})
	e, err := g.Entry(t.Context(), "")
	assert.ErrorIs(t, err, core.ErrInvalid)
	assert.NotErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, core.KindNone, core.KindOf(err))
	e.Exit()
	assert.Empty(t, g.Tree().Resources)
}

func TestNilContextNeverEnds(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	clock.SetSleep(clocks.SleepRecord)
	g := newGuard(t, api.Config{Clock: clock}, flow.Rule{Resource: "r", Threshold: 10, Behavior: flow.Throttle})
	var none context.Context
	for range 3 {
		e, err := g.Entry(none, "r")
		require.NoError(t, err)
		assert.NotNil(t, e.Context())
		e.Exit()
	}
	assert.Equal(t, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, clock.Slept())
	assert.NotNil(t, api.WithOrigin(api.WithContext(none, "web"), "app"))
}

func TestEndedContextMattersOnlyToAWait(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock}, flow.Rule{Resource: "r", Threshold: 10, Behavior: flow.Throttle})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	e, err := g.Entry(ctx, "r")
	require.NoError(t, err, "the first call needs no wait")
	e.Exit()
	_, err = g.Entry(ctx, "r")
	require.ErrorIs(t, err, core.ErrBlocked, "the second would have to wait")
	assert.Empty(t, clock.Slept(), "refused at once")

	clock.Advance(100 * time.Millisecond)
	e, err = g.Entry(t.Context(), "r")
	require.NoError(t, err, "a refused call leaves its slot")
	e.Exit()
}

func TestDeadlineBeforeTheTurnIsRefusedAtOnce(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	clock := clocks.NewManual(start)
	clock.SetSleep(clocks.SleepRecord)
	g := newGuard(t, api.Config{Clock: clock}, flow.Rule{ID: "even", Resource: "r", Threshold: 10, Behavior: flow.Throttle})
	enter := func(deadline time.Duration) error {
		// Real deadlines of a virtual time: only their distance matters.
		ctx, cancel := context.WithDeadline(t.Context(), start.Add(deadline))
		defer cancel()
		e, err := g.Entry(fakeLive{ctx}, "r")
		e.Exit()
		return err
	}
	assert.NoError(t, enter(time.Second))
	err := enter(99 * time.Millisecond)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, "even", block.Rule)
	assert.NoError(t, enter(100*time.Millisecond))
}

// fakeLive is a context whose deadline lies in a virtual time, and so isn't over.
type fakeLive struct{ context.Context }

func (fakeLive) Err() error            { return nil }
func (fakeLive) Done() <-chan struct{} { return nil }

func TestContextEndsDuringTheWait(t *testing.T) {
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	g := newGuard(t, api.Config{Clock: clock}, flow.Rule{Resource: "r", Threshold: 10, Behavior: flow.Throttle})
	e, err := g.Entry(t.Context(), "r")
	require.NoError(t, err)
	e.Exit()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := g.Entry(ctx, "r")
		done <- err
	}()
	clock.AwaitParked(1)
	cancel()
	err = <-done
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, core.KindFlow, core.KindOf(err))

	clock.Advance(100 * time.Millisecond)
	e, err = g.Entry(t.Context(), "r")
	require.NoError(t, err, "the slot was released")
	e.Exit()
}

func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		count  int
		want   int64 // units counted
		refuse bool
	}{
		{count: math.MinInt, want: 1},
		{count: -1, want: 1},
		{count: 0, want: 1},
		{count: 1, want: 1},
		{count: stat.MaxUnits, want: stat.MaxUnits},
		{count: stat.MaxUnits + 1, refuse: true},
		{count: math.MaxInt, refuse: true},
	} {
		g := newGuard(t, api.Config{})
		e, err := g.Entry(t.Context(), "r", api.Units(tt.count))
		if tt.refuse {
			assert.ErrorIs(t, err, core.ErrInvalid, "%d", tt.count)
			continue
		}
		require.NoError(t, err)
		r, ok := g.Engine().FindResource("r")
		require.True(t, ok)
		assert.Equal(t, tt.want, r.Totals().Pass, "%d", tt.count)
		e.Exit()
	}
}

func TestZeroEntry(t *testing.T) {
	var e api.Admitted
	e.Exit()
	e.Exit()
	e.Fail(errors.New("x"))
	e.ExitOn(nil)
	assert.NotNil(t, e.Context())
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		cfg  api.Config
		want string
	}{
		{api.Config{Buckets: 3}, "3 buckets don't divide an interval of 1s"},
		{api.Config{Buckets: -1}, "-1 buckets"},
		{api.Config{Interval: -time.Second}, "an interval of -1s"},
		{api.Config{Interval: time.Hour, Buckets: 1440}, "the maximum is 128"},
		{api.Config{Interval: 48 * time.Hour}, "an interval of 48h0m0s"},
		{api.Config{OccupyTimeout: -1}, "OccupyTimeout is -1ns"},
		{api.Config{ColdFactor: 1}, "ColdFactor is 1"},
		{api.Config{Caps: node.Caps{Origins: -1}}, "a cap of -1 origins"},
	} {
		_, err := api.New(tt.cfg)
		assert.ErrorContains(t, err, tt.want)
	}
}

func TestBadRulesLeaveTheOldOnes(t *testing.T) {
	g := newGuard(t, api.Config{}, flow.Rule{Resource: "r", Threshold: 0})
	before := g.Rules()
	for _, bad := range []flow.Rule{
		{Threshold: 1},
		{Resource: "r", Threshold: math.NaN()},
		{Resource: "r", Threshold: math.Inf(1)},
		{Resource: "r", Threshold: -1},
		{Resource: "r", Threshold: 1, Buckets: 3},
		{Resource: "r", Threshold: 1, Interval: time.Millisecond},
		{Resource: "r", Threshold: 1, Relation: flow.Associated},
		{Resource: "(", Threshold: 1, Match: spec.MatchRegex},
	} {
		assert.Error(t, g.LoadRules(rules.Set{Flow: []flow.Rule{{Resource: "other", Threshold: 1}, bad}}))
	}
	same := flow.Rule{Resource: "r", Threshold: 1}
	assert.ErrorContains(t, g.LoadRules(rules.Set{Flow: []flow.Rule{same, same}}), "are the same")
	twice := flow.Rule{ID: "x", Resource: "r", Threshold: 1}
	other := flow.Rule{ID: "x", Resource: "s", Threshold: 1}
	assert.ErrorContains(t, g.LoadRules(rules.Set{Flow: []flow.Rule{twice, other}}), `the same id "x"`)

	assert.Equal(t, before, g.Rules())
	_, err := g.Entry(t.Context(), "r")
	assert.ErrorIs(t, err, core.ErrBlocked)
}
