package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

var seed = chance.Seed

func TestMain(m *testing.M) { books.Main(m) }

const ms = time.Millisecond

// guard is an engine under test, on a clock that is moved by hand.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual // nil if the configuration brings its own
}

func newGuard(t testing.TB, rules ...adaptive.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...adaptive.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	g := &guard{Engine: e, t: t, clock: clock}
	g.load(rules...)
	return g
}

func (g *guard) load(rules ...adaptive.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error {
		return adaptive.Compile(b, rules)
	}))
}

// enter makes a call that must run at once.
func (g *guard) enter(opts ...engine.Option) engine.Entry {
	g.t.Helper()
	return trial.Enter(g.t, g.Engine, opts...)
}

// refused makes a call that must be refused.
func (g *guard) refused(opts ...engine.Option) {
	g.t.Helper()
	trial.Refused(g.t, g.Engine, core.KindAdaptive, opts...)
}

func (g *guard) figures(id string) core.RuleStats {
	g.t.Helper()
	return trial.Figures(g.t, g.Engine, id)
}

// limit returns the rule's limit for its only resource.
func (g *guard) limit() adaptive.LimitStats {
	g.t.Helper()
	var limits []adaptive.LimitStats
	for _, f := range g.Rules().RuleStats() {
		if learned, ok := f.Details.(adaptive.Stats); ok {
			limits = append(limits, learned.Limits...)
		}
	}
	require.Len(g.t, limits, 1)
	return limits[0]
}

// learning returns a rule that starts at a limit.
func learning(limit int) adaptive.Rule {
	return adaptive.Rule{ID: "learn", Resource: "orders", Start: limit}
}
