package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

func TestConfigDefaults(t *testing.T) {
	e, err := engine.NewEngine(engine.Config{Chain: trial.Chain()})
	require.NoError(t, err)
	c := e.Config()
	assert.Equal(t, time.Second, c.Interval)
	assert.Equal(t, 2, c.Buckets)
	assert.Equal(t, 500*time.Millisecond, c.OccupyTimeout)
	assert.Equal(t, 3, c.ColdFactor)
	assert.IsType(t, new(clocks.System), e.Config().Clock)
	assert.NotNil(t, e.Logger())
	assert.Equal(t, trial.Chain().Names(), e.Config().Chain.Names())
}

// known bug 47
func TestConfigRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  engine.Config
		want string
	}{
		{"no chain", engine.Config{}, "penstock: Config.Chain is nil: use slots.Default()"},
		{"interval", engine.Config{Interval: time.Millisecond}, "stat: second window: an interval of 1ms: use 10ms to 24h0m0s"},
		{"negative interval", engine.Config{Interval: -1}, "stat: second window: an interval of -1ns: use 10ms to 24h0m0s"},
		{"buckets", engine.Config{Buckets: -1}, "stat: second window: -1 buckets: use 1 to 1440"},
		{"buckets that don't divide", engine.Config{Buckets: 7},
			"stat: second window: 7 buckets don't divide an interval of 1s: each would last 142.857142ms and a fraction of a nanosecond"},
		{"too many fine buckets", engine.Config{Interval: time.Minute, Buckets: 300},
			"the maximum is 128"},
		{"occupy timeout", engine.Config{OccupyTimeout: -1}, "penstock: Config.OccupyTimeout is -1ns: use a duration from 0 (for 500ms) to 24h"},
		{"long occupy timeout", engine.Config{OccupyTimeout: 25 * time.Hour}, "penstock: Config.OccupyTimeout is 25h0m0s: use a duration from 0 (for 500ms) to 24h"},
		{"cold factor 1", engine.Config{ColdFactor: 1}, "penstock: Config.ColdFactor is 1: use a whole number from 2 to 1000, or 0 for 3"},
		{"cold factor below", engine.Config{ColdFactor: -3}, "penstock: Config.ColdFactor is -3: use a whole number from 2 to 1000, or 0 for 3"},
		{"cold factor above", engine.Config{ColdFactor: 1001}, "penstock: Config.ColdFactor is 1001: use a whole number from 2 to 1000, or 0 for 3"},
		{"short leak", engine.Config{LeakAfter: time.Millisecond - 1}, "penstock: Config.LeakAfter is 999.999µs: use a duration from 1ms to 24h, or 0 to watch for no leaks"},
		{"negative leak", engine.Config{LeakAfter: -1}, "penstock: Config.LeakAfter is -1ns: use a duration from 1ms to 24h, or 0 to watch for no leaks"},
		{"long leak", engine.Config{LeakAfter: 24*time.Hour + 1}, "penstock: Config.LeakAfter is 24h0m0.000000001s: use a duration from 1ms to 24h, or 0 to watch for no leaks"},
		{"caps", engine.Config{Caps: node.Caps{Origins: -1}}, "node: a cap of -1 origins: use a positive number, or 0 for 10000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "no chain" {
				tt.cfg.Chain = trial.Chain()
			}
			_, err := engine.NewEngine(tt.cfg)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

// An update that fails changes nothing. known bug 73
func TestUpdateIsAllOrNothing(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 0})
	before := e.Rules()
	failure := errors.New("x")
	err := e.Update(func(b *engine.SnapshotBuilder) error {
		assert.Same(t, before.Family(core.KindFlow), b.Previous(core.KindFlow))
		require.NoError(t, flow.Compile(b, nil))
		assert.NotSame(t, before.Family(core.KindFlow), b.Compiled(core.KindFlow))
		return failure
	})
	require.ErrorIs(t, err, failure)
	assert.Same(t, before, e.Rules())
	_, err = e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked)

	assert.Panics(t, func() { _ = e.Update(func(*engine.SnapshotBuilder) error { panic("x") }) })
	load(t, e) // no lock is left held
	assert.Equal(t, before.Revision+1, e.Rules().Revision)
	enter(t, e, t.Context()).Exit()
}

// A family that an update leaves out no longer has rules.
func TestUpdateReplacesEverything(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{Resource: "orders", Threshold: 0})
	require.NoError(t, e.Update(func(*engine.SnapshotBuilder) error { return nil }))
	enter(t, e, t.Context()).Exit()
	assert.Empty(t, e.Rules().RuleStats())
}

// Close writes the outstanding lines of the block log.
func TestCloseFlushesTheBlockLog(t *testing.T) {
	var log lines
	e, _ := newEngine(t, engine.Config{Logger: log.logger()}, flow.Rule{ID: "r", Resource: "orders", Threshold: 0})
	for range 3 {
		_, err := e.Enter(t.Context(), "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	require.Len(t, log.all(), 1)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Len(t, log.all(), 2)
	assert.Contains(t, log.all()[1], `kind=flow resource=orders rule=r count=2`)
	_, err := e.Enter(t.Context(), "orders", nil)
	require.ErrorIs(t, err, core.ErrBlocked, "rules still apply")
}

// known bug 105: the state kept about resources that left is bounded too.
func TestNothingIsKeptOfResourcesThatLeft(t *testing.T) {
	e, clock := newEngine(t, engine.Config{Caps: node.Caps{Resources: 100}},
		flow.Rule{Resource: ".*", Match: spec.MatchRegex, Threshold: 5})
	for i := range 5_000 {
		if i%100 == 0 {
			clock.Advance(time.Hour)
		}
		entry, err := e.Enter(t.Context(), fmt.Sprint(i), nil)
		require.NoError(t, err)
		entry.Exit()
	}
	n := 0
	e.Rules().Family(core.KindFlow).EachError(func(*core.BlockError) { n++ })
	require.LessOrEqual(t, n, 101, "controllers of 100 resources and the overflow")
}
