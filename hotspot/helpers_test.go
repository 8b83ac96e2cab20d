package hotspot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

var seed, random = chance.Seed, chance.Source

func TestMain(m *testing.M) { books.Main(m) }

var start = trial.Start

const ms = time.Millisecond

// guard is an engine under test, on a clock that stands still. Queued calls record their wait and
// run at once.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual
}

func newGuard(t testing.TB, rules ...hotspot.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...hotspot.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	clock.SetSleep(clocks.SleepRecord)
	g := &guard{e, t, clock}
	g.load(rules...)
	t.Cleanup(func() {
		if !t.Failed() {
			assert.Zero(t, g.inFlight(), "units in flight")
		}
	})
	return g
}

// load loads rules, for "orders" unless they name a resource.
func (g *guard) load(rules ...hotspot.Rule) {
	g.t.Helper()
	rules = spec.Clone(rules)
	for i := range rules {
		if rules[i].Resource == "" {
			rules[i].Resource = "orders"
		}
	}
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error { return hotspot.Compile(b, rules) }))
}

// at moves the clock to d after the start.
func (g *guard) at(d time.Duration) { g.clock.AdvanceTo(start.Add(d).UnixNano()) }

// figures returns the stats of a rule.
func (g *guard) figures(id string) core.RuleStats {
	g.t.Helper()
	return trial.Figures(g.t, g.Engine, id)
}

// details returns what a rule reports about values.
func (g *guard) details(id string) hotspot.Stats {
	g.t.Helper()
	return trial.Details[hotspot.Stats](g.t, g.Engine, id)
}

func (g *guard) inFlight() (n int64) {
	for _, f := range g.Rules().RuleStats() {
		if values, ok := f.Details.(hotspot.Stats); ok {
			n += values.InFlight
		}
	}
	return n
}

func (g *guard) enter(opts ...engine.Option) (engine.Entry, error) {
	return g.Enter(g.t.Context(), "orders", opts)
}

// user attaches a value as the tests' rules expect it, and passes it as an argument too.
func user(v any) engine.Option { return engine.Param("user", v) }

// waits makes a call, and returns how long it waited.
func (g *guard) waits(opts ...engine.Option) (e engine.Entry, wait time.Duration, err error) {
	slept := len(g.clock.Slept())
	e, err = g.enter(opts...)
	if all := g.clock.Slept(); len(all) > slept {
		wait = all[slept]
	}
	return e, wait, err
}

// outcome makes a call, ends it, and returns "pass", "block" or how long it waited.
func (g *guard) outcome(opts ...engine.Option) string {
	g.t.Helper()
	entry, wait, err := g.waits(opts...)
	entry.Exit()
	if err != nil {
		require.ErrorIs(g.t, err, core.ErrBlocked)
		assert.Equal(g.t, core.KindHotspot, core.KindOf(err))
		return "block"
	}
	if wait > 0 {
		return wait.String()
	}
	return "pass"
}

// outcomes makes n identical calls, and shortens "pass, pass, block" to "pass x2, block".
func (g *guard) outcomes(n int, opts ...engine.Option) string {
	g.t.Helper()
	var words []string
	for range n {
		words = append(words, g.outcome(opts...))
	}
	return trial.Runs(words)
}

// passes returns how many of n identical calls pass, with or without a wait.
func (g *guard) passes(n int, opts ...engine.Option) (passed int) {
	g.t.Helper()
	for range n {
		if g.outcome(opts...) != "block" {
			passed++
		}
	}
	return passed
}

// comeAgain returns the RetryAfter of a refusal, which must be known.
func comeAgain(t testing.TB, b *core.BlockError) time.Duration {
	t.Helper()
	wait, known := b.RetryAfter()
	require.True(t, known)
	return wait
}

// assertNobodyKnows checks that RetryAfter is unknown.
func assertNobodyKnows(t testing.TB, b *core.BlockError, why ...any) {
	t.Helper()
	wait, known := b.RetryAfter()
	assert.False(t, known, why...)
	assert.Zero(t, wait)
}
