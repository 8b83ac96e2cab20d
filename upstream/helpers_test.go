package upstream

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestMain(m *testing.M) { books.Main(m) }

const (
	ms  = time.Millisecond
	get = "GET api.example.com"
)

var errFull = errors.New("429")

// guard is an engine under test, on a clock that stands still, whose rules draw the same numbers in
// each run.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual
}

func newGuard(t testing.TB, rules ...Rule) *guard { return newGuardWith(t, engine.Config{}, rules...) }

func newGuardWith(t testing.TB, cfg engine.Config, rules ...Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	g := &guard{e, t, clock}
	g.load(rules...)
	return g
}

func (g *guard) load(rules ...Rule) {
	g.t.Helper()
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error { return compile(b, rules, 1) }))
}

func (g *guard) after(d time.Duration) { g.clock.Advance(d) }

// call makes a call that gets an answer at once, and reports whether it was admitted.
func (g *guard) call(name string, answer error, opts ...engine.Option) bool {
	g.t.Helper()
	e, err := g.Enter(g.t.Context(), name, opts)
	if err != nil {
		require.Equal(g.t, core.KindUpstream, core.KindOf(err))
		return false
	}
	e.Fail(answer)
	e.Exit()
	return true
}

// enter makes a call that must be admitted, and stays in flight.
func (g *guard) enter(name string, opts ...engine.Option) engine.Entry {
	g.t.Helper()
	e, err := g.Enter(g.t.Context(), name, opts)
	require.NoError(g.t, err)
	return e
}

// refused makes a call that must be refused.
func (g *guard) refused(name string, opts ...engine.Option) *core.BlockError {
	g.t.Helper()
	_, err := g.Enter(g.t.Context(), name, opts)
	b, ok := errors.AsType[*core.BlockError](err)
	require.True(g.t, ok, "%v", err)
	require.Equal(g.t, core.KindUpstream, b.Kind)
	return b
}

func asks(d time.Duration) error { return engine.Overloaded(errFull, d) }
