package engine_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestMain(m *testing.M) { books.Main(m) }

var random = chance.Source

var (
	start    = time.Unix(1_700_000_000, 0)
	year1900 = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	year2100 = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func since(c *clocks.Manual) time.Duration { return time.Duration(c.Now() - start.UnixNano()) }

// newEngine returns an engine on a ManualClock, with the standard chain unless the configuration
// has one. At the end of the test it must hold nothing.
func newEngine(t testing.TB, cfg engine.Config, rules ...flow.Rule) (*engine.Engine, *clocks.Manual) {
	t.Helper()
	clock := clocks.NewManual(start)
	if cfg.Clock == nil {
		cfg.Clock = clock
	}
	if cfg.Chain == nil {
		cfg.Chain = trial.Chain()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := engine.NewEngine(cfg)
	require.NoError(t, err)
	load(t, e, rules...)
	books.Keep(t, e)
	return e, clock
}

func load(t testing.TB, e *engine.Engine, rules ...flow.Rule) {
	t.Helper()
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
}

func resource(t testing.TB, e *engine.Engine, name string) *engine.Resource {
	t.Helper()
	r, ok := e.FindResource(name)
	require.True(t, ok, "no resource %q", name)
	return r
}

// fake is a slot with every role; nil functions do nothing.
type fake struct {
	name      string
	prepare   func(*engine.Invocation)
	ask       func(*engine.Invocation) engine.Verdict
	take      func(*engine.Invocation) engine.Verdict
	recheck   func(*engine.Invocation) engine.Verdict
	passed    func(*engine.Invocation)
	blocked   func(*engine.Invocation, *core.BlockError)
	completed func(*engine.Invocation)
}

func (f *fake) Name() string                                { return f.name }
func (f *fake) Prepare(inv *engine.Invocation)              { run(f.prepare, inv) }
func (f *fake) Ask(inv *engine.Invocation) engine.Verdict   { return judge(f.ask, inv) }
func (f *fake) Take(inv *engine.Invocation) engine.Verdict  { return judge(f.take, inv) }
func (f *fake) Passed(inv *engine.Invocation)               { run(f.passed, inv) }
func (f *fake) Completed(inv *engine.Invocation)            { run(f.completed, inv) }
func (f *fake) Recheck(i *engine.Invocation) engine.Verdict { return judge(f.recheck, i) }
func (f *fake) Blocked(inv *engine.Invocation, b *core.BlockError) {
	if f.blocked != nil {
		f.blocked(inv, b)
	}
}

func run(f func(*engine.Invocation), inv *engine.Invocation) {
	if f != nil {
		f(inv)
	}
}

func judge(f func(*engine.Invocation) engine.Verdict, inv *engine.Invocation) engine.Verdict {
	if f == nil {
		return engine.Verdict{}
	}
	return f(inv)
}

// refusal is the rejection of the slots of a test.
func refusal(rule string) *core.BlockError {
	return engine.NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: rule}, nil, nil, nil)
}

// waiter is a slot that makes every call wait for the duration in its first argument.
func waiter() *fake {
	b := refusal("waiter")
	return &fake{name: "waiter", take: func(inv *engine.Invocation) engine.Verdict {
		if len(inv.Args()) == 0 {
			return engine.Verdict{}
		}
		return engine.Verdict{Wait: inv.Args()[0].(time.Duration), By: b}
	}}
}

// lines collects a logger's output, a line for each record.
type lines struct{ strings.Builder }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) all() []string {
	text := strings.TrimSuffix(l.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
