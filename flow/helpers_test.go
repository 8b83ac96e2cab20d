package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

var random = chance.Source

func TestMain(m *testing.M) { books.Main(m) }

var start = trial.Start

// guard is an engine under test, on a clock that stands still.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual // nil if the configuration brings its own
}

// newGuard returns a guard on which queued calls record their wait and run at once. It checks at
// the end of the test that nothing is held.
func newGuard(t testing.TB, rules ...flow.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...flow.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	if clock != nil {
		clock.SetSleep(clocks.SleepRecord)
	}
	g := &guard{e, t, clock}
	g.load(rules...)
	return g
}

func (g *guard) load(rules ...flow.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
}

// at moves the clock to d after the start.
func (g *guard) at(d time.Duration) { g.clock.AdvanceTo(start.Add(d).UnixNano()) }

func (g *guard) resource(name string) *engine.Resource {
	g.t.Helper()
	r, ok := g.FindResource(name)
	require.True(g.t, ok, "no resource %q", name)
	return r
}

// enter makes a call from its text form, a resource followed by modifiers:
//
//	orders
//	orders from app in web x3 first
//
// "first" is prioritized.
func (g *guard) enter(call string) (engine.Entry, error) {
	words := strings.Fields(call)
	context, origin := "", ""
	var opts []engine.Option
	for i := 1; i < len(words); i++ {
		var n int
		switch {
		case words[i] == "from":
			i++
			origin = words[i]
		case words[i] == "in":
			i++
			context = words[i]
		case words[i] == "first":
			opts = append(opts, engine.Prioritized())
		default:
			_, err := fmt.Sscanf(words[i], "x%d", &n)
			require.NoError(g.t, err, call)
			opts = append(opts, engine.Units(n))
		}
	}
	return g.Enter(engine.WithOrigin(engine.WithContext(g.t.Context(), context), origin), words[0], opts)
}

// outcome makes a call, ends it, and returns "pass", "block" or how long it waited.
func (g *guard) outcome(call string) string {
	g.t.Helper()
	waits := len(g.clock.Slept())
	entry, err := g.enter(call)
	entry.Exit()
	if err != nil {
		require.ErrorIs(g.t, err, core.ErrBlocked)
		return "block"
	}
	if slept := g.clock.Slept(); len(slept) > waits {
		return slept[waits].String()
	}
	return "pass"
}

// passes returns how many of n identical calls pass, with or without a wait.
func (g *guard) passes(n int, call string) int {
	g.t.Helper()
	passed := 0
	for range n {
		if g.outcome(call) != "block" {
			passed++
		}
	}
	return passed
}

// step is one line of a script: at a time after the start, times calls are made (default 1), with
// the wanted outcomes and how often each follows, as in "pass x3, block x2".
type step struct {
	at    time.Duration
	enter string
	times int
	want  string
}

func (g *guard) run(script []step) {
	g.t.Helper()
	for i, s := range script {
		g.at(s.at)
		var outcomes []string
		for range max(1, s.times) {
			outcomes = append(outcomes, g.outcome(s.enter))
		}
		assert.Equal(g.t, s.want, trial.Runs(outcomes), "step %d, at %v: %s", i, s.at, s.enter)
	}
}

// open makes n calls that stay open until the returned function is called.
func (g *guard) open(n int, call string) (exit func()) {
	g.t.Helper()
	entries := make([]engine.Entry, n)
	for i := range entries {
		e, err := g.enter(call)
		require.NoError(g.t, err)
		entries[i] = e
	}
	return func() {
		for _, e := range entries {
			e.Exit()
		}
	}
}

// shadowBlocked returns the number of calls that a shadow rule would have refused.
func (g *guard) shadowBlocked(id string) int64 {
	g.t.Helper()
	return trial.Figures(g.t, g.Engine, id).ShadowBlocked
}

const ms = time.Millisecond

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

// window returns flow.Strict or flow.Ring.
func window(strict bool) flow.Window {
	if strict {
		return flow.Strict
	}
	return flow.Ring
}
