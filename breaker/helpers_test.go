package breaker_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
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
	clock *clocks.Manual // nil if the configuration brings its own
	mu    sync.Mutex
	seen  []breaker.Change
}

func newGuard(t testing.TB, rules ...breaker.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...breaker.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	return newGuardOn(t, e, clock, rules...)
}

// newPanickyGuard is like newGuardWith, but for tests in which code called by the engine panics; the
// engine counts the panics.
func newPanickyGuard(t testing.TB, cfg engine.Config, rules ...breaker.Rule) *guard {
	t.Helper()
	clock := clocks.NewManual(start)
	cfg.Clock, cfg.Chain, cfg.Logger = clock, trial.Chain(), slog.New(slog.DiscardHandler)
	e, err := engine.NewEngine(cfg)
	require.NoError(t, err)
	books.Keep(t, e)
	return newGuardOn(t, e, clock, rules...)
}

func newGuardOn(t testing.TB, e *engine.Engine, clock *clocks.Manual, rules ...breaker.Rule) *guard {
	t.Helper()
	g := &guard{Engine: e, t: t, clock: clock}
	g.load(rules...)
	g.table().Listen(func(c breaker.Change) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, c)
	})
	return g
}

func (g *guard) load(rules ...breaker.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.tryLoad(rules, nil))
}

func (g *guard) tryLoad(rules []breaker.Rule, flows []flow.Rule) error {
	return g.Update(func(b *engine.SnapshotBuilder) error {
		if err := flow.Compile(b, flows); err != nil {
			return err
		}
		return breaker.Compile(b, rules)
	})
}

// table is the interface of the compiled rules.
type table interface {
	Status() []breaker.Status
	Listen(f func(breaker.Change)) (remove func())
	Force(rule, resource string, f breaker.Force) error
}

func (g *guard) table() table { return g.Rules().Family(core.KindBreaker).(table) }

// status returns the status of a rule's breaker on a resource.
func (g *guard) status(rule, resource string) breaker.Status {
	g.t.Helper()
	for _, s := range g.table().Status() {
		if s.Rule == rule && s.Resource == resource {
			return s
		}
	}
	g.t.Fatalf("no breaker of %q on %q: %v", rule, resource, g.table().Status())
	return breaker.Status{}
}

func (g *guard) state(rule string) breaker.State { g.t.Helper(); return g.status(rule, "orders").State }

// at moves the clock to d after the start.
func (g *guard) at(d time.Duration) { g.clock.AdvanceTo(start.Add(d).UnixNano()) }

func (g *guard) enter(resource string) (engine.Entry, error) {
	return g.Enter(g.t.Context(), resource, nil)
}

// open makes a call that must pass, and leaves it open.
func (g *guard) open(resource string) engine.Entry {
	g.t.Helper()
	e, err := g.enter(resource)
	require.NoError(g.t, err)
	return e
}

// call makes a call that takes some time, and returns "pass" or the rule that refused it.
func (g *guard) call(resource string, takes time.Duration, failure error) string {
	g.t.Helper()
	e, err := g.enter(resource)
	if err != nil {
		require.ErrorIs(g.t, err, core.ErrBlocked)
		require.Equal(g.t, core.KindBreaker, core.KindOf(err))
		b, _ := errors.AsType[*core.BlockError](err)
		return b.Rule
	}
	if takes > 0 {
		g.clock.Advance(takes)
	}
	e.Fail(failure)
	e.Exit()
	return "pass"
}

// calls makes calls to "orders": g succeeds, f fails, s takes 101 ms.
func (g *guard) calls(how string) string {
	g.t.Helper()
	var outcomes []string
	for _, c := range how {
		switch c {
		case 'g':
			outcomes = append(outcomes, g.call("orders", 0, nil))
		case 'f':
			outcomes = append(outcomes, g.call("orders", 0, errOwn))
		case 's':
			outcomes = append(outcomes, g.call("orders", 101*ms, nil))
		default:
			g.t.Fatalf("no call %q", c)
		}
	}
	return trial.Runs(outcomes)
}

// changes returns the changes since its last call, as in "closed-open".
func (g *guard) changes() string {
	var changes []string
	for _, c := range g.seen {
		changes = append(changes, fmt.Sprintf("%v-%v", c.From, c.To))
	}
	g.seen = nil
	return strings.Join(changes, " ")
}

// step is one line of a script: calls at a time after the start, the wanted outcomes, and the
// wanted changes of the breakers.
type step struct {
	at      time.Duration
	calls   string
	want    string
	changes string
}

func (g *guard) run(script []step) {
	g.t.Helper()
	for i, s := range script {
		g.at(s.at)
		assert.Equal(g.t, s.want, g.calls(s.calls), "step %d, at %v: %s", i, s.at, s.calls)
		assert.Equal(g.t, s.changes, g.changes(), "step %d, at %v: %s", i, s.at, s.calls)
	}
}

// quick returns a breaker that opens for one second on the first failure.
func quick(id string) breaker.Rule {
	return breaker.Rule{ID: id, Resource: "orders", MinCalls: 1, Recovery: time.Second}
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
