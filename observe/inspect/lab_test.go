package inspect_test

import (
	"context"
	"errors"
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
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
)

func TestMain(m *testing.M) { books.Main(m) }

// start is a whole second.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// lab is an engine with a manual clock. At the end of the test, every call that entered must have
// exited.
type lab struct {
	*engine.Engine
	t     *testing.T
	clock *clocks.Manual
}

func newLab(t *testing.T, config engine.Config) *lab {
	t.Helper()
	l := &lab{t: t, clock: clocks.NewManual(start)}
	config.Clock = l.clock
	config.Logger = slog.New(slog.DiscardHandler)
	if config.Chain == nil {
		config.Chain = trial.Chain()
	}
	var err error
	l.Engine, err = engine.NewEngine(config)
	require.NoError(t, err)
	books.Keep(t, l.Engine)
	return l
}

func (l *lab) tree() inspect.Tree { return inspect.Snapshot(l.Engine) }

func (l *lab) rules(rules ...flow.Rule) {
	l.t.Helper()
	require.NoError(l.t, l.Update(func(b *engine.SnapshotBuilder) error { return flow.Compile(b, rules) }))
}

// anywhere is a context without name or origin.
var anywhere = context.Background()

// from is a context of the given name and origin.
func from(name, origin string) context.Context {
	return engine.WithOrigin(engine.WithContext(context.Background(), name), origin)
}

// enter starts a call that must pass.
func (l *lab) enter(ctx context.Context, resource string, opts ...engine.Option) engine.Entry {
	l.t.Helper()
	e, err := l.Enter(ctx, resource, opts)
	require.NoError(l.t, err)
	return e
}

// call makes n calls in a row that take took each.
func (l *lab) call(ctx context.Context, n int, took time.Duration, resource string, opts ...engine.Option) {
	l.t.Helper()
	for range n {
		e := l.enter(ctx, resource, opts...)
		l.clock.Advance(took)
		e.Exit()
	}
}

// blocked makes n calls that must be refused.
func (l *lab) blocked(ctx context.Context, n int, resource string) {
	l.t.Helper()
	for range n {
		_, err := l.Enter(ctx, resource, nil)
		require.ErrorIs(l.t, err, core.ErrBlocked)
	}
}

func text(t *testing.T, tree inspect.Tree) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, tree.WriteText(&out))
	return out.String()
}

func sentinel(t *testing.T, tree inspect.Tree) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, tree.WriteSentinel(&out))
	return out.String()
}

// found returns a lookup's result, which must exist.
func found(t *testing.T, n *inspect.Node, ok bool) *inspect.Node {
	t.Helper()
	require.True(t, ok)
	return n
}

// names formats nodes with their children, such as "root(a b(c))".
func names(n *inspect.Node) string {
	var below []string
	for i := range n.Children {
		below = append(below, names(&n.Children[i]))
	}
	if len(below) == 0 {
		return n.Name
	}
	return n.Name + "(" + strings.Join(below, " ") + ")"
}

// broken is a slot that panics.
type broken struct{}

func (broken) Name() string                           { return "broken" }
func (broken) Ask(*engine.Invocation) engine.Verdict  { panic("broken") }
func (broken) Take(*engine.Invocation) engine.Verdict { return engine.Verdict{} }

func withBroken() *engine.Chain { return trial.Chain().With(broken{}, engine.After("flow")) }

// failing is a writer that always fails.
type failing struct{}

var errFull = errors.New("full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// small holds caps that are reached quickly.
var small = node.Caps{Resources: 2, Contexts: 1, Calls: 3, Origins: 1}
