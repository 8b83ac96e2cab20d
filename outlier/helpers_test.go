package outlier_test

import (
	"errors"
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
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/outlier"
)

func TestMain(m *testing.M) { books.Main(m) }

const ms = time.Millisecond

var (
	start  = trial.Start
	errOwn = errors.New("the call's own failure")
)

// guard is an engine under test, on a clock that stands still.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual
}

func newGuard(t testing.TB, rules ...outlier.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...outlier.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	g := &guard{Engine: e, t: t, clock: clock}
	g.load(rules...)
	return g
}

func (g *guard) load(rules ...outlier.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.tryLoad(rules))
}

func (g *guard) tryLoad(rules []outlier.Rule, flows ...flow.Rule) error {
	return g.Update(func(b *engine.SnapshotBuilder) error {
		if err := flow.Compile(b, flows); err != nil {
			return err
		}
		return outlier.Compile(b, rules)
	})
}

// table is the interface of the compiled rules.
type table interface {
	Ejected(resource string, now int64) []string
	Stats() []core.RuleStats
}

func (g *guard) table() table { return g.Rules().Family(core.KindOutlier).(table) }

// at moves the clock to d after the start.
func (g *guard) at(d time.Duration) { g.clock.AdvanceTo(start.Add(d).UnixNano()) }

// out returns the endpoints to avoid.
func (g *guard) out() string {
	return strings.Join(g.table().Ejected("orders", g.clock.Now()), " ")
}

func (g *guard) figures(i int) core.RuleStats { return g.table().Stats()[i] }

// details returns the endpoint stats of the only rule, or the zero value if it knows no endpoints.
func (g *guard) details() outlier.Stats {
	f, _ := g.figures(0).Details.(outlier.Stats)
	return f
}

func (g *guard) enter(endpoint string) (engine.Entry, error) {
	return g.Enter(g.t.Context(), "orders", []engine.Option{engine.Endpoint(endpoint)})
}

// open makes a call that must pass, and leaves it open.
func (g *guard) open(endpoint string) engine.Entry {
	g.t.Helper()
	e, err := g.enter(endpoint)
	require.NoError(g.t, err)
	return e
}

// call makes a call, and returns "pass" or the rule that refused it.
func (g *guard) call(endpoint string, failure error) string {
	g.t.Helper()
	e, err := g.enter(endpoint)
	if err != nil {
		require.ErrorIs(g.t, err, core.ErrBlocked)
		require.Equal(g.t, core.KindOutlier, core.KindOf(err))
		b, _ := errors.AsType[*core.BlockError](err)
		return b.Rule
	}
	e.Fail(failure)
	e.Exit()
	return "pass"
}

// calls makes calls, as in "a a! b": to the endpoint a, to a again, which fails, and to b. It
// returns the calls that passed, in the same form.
func (g *guard) calls(script string) string {
	g.t.Helper()
	var passed []string
	for word := range strings.FieldsSeq(script) {
		addr, fails := strings.CutSuffix(word, "!")
		var failure error
		if fails {
			failure = errOwn
		}
		if g.call(addr, failure) == "pass" {
			passed = append(passed, word)
		}
	}
	return strings.Join(passed, " ")
}

// step is one line of a script: calls at a time after the start, which of them pass, and the
// endpoints to avoid after that.
type step struct {
	at     time.Duration
	calls  string
	passed string
	out    string
}

func (g *guard) run(script []step) {
	g.t.Helper()
	for i, s := range script {
		g.at(s.at)
		assert.Equal(g.t, s.passed, g.calls(s.calls), "step %d, at %v: %s", i, s.at, s.calls)
		assert.Equal(g.t, s.out, g.out(), "step %d, at %v: %s", i, s.at, s.calls)
	}
}

// quick returns a rule that ejects an endpoint for one second at its first failure.
func quick(id string) outlier.Rule {
	return outlier.Rule{ID: id, Resource: "orders", MinCalls: 1, Interval: time.Second, Recovery: time.Second}
}

// comeAgain returns the RetryAfter of a refusal, which must be known.
func comeAgain(t testing.TB, b *core.BlockError) time.Duration {
	t.Helper()
	wait, known := b.RetryAfter()
	require.True(t, known)
	return wait
}
