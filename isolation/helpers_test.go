package isolation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = trial.Start

const ms = time.Millisecond

// guard is an engine under test, on a clock that parks calls that wait.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual // nil if the configuration brings its own

	mu  sync.Mutex
	ran []string // names of queued calls, in the order in which they ran
}

func newGuard(t testing.TB, rules ...isolation.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

func newGuardWith(t testing.TB, cfg engine.Config, rules ...isolation.Rule) *guard {
	t.Helper()
	e, clock := trial.Engine(t, cfg)
	g := &guard{Engine: e, t: t, clock: clock}
	g.load(rules...)
	return g
}

func (g *guard) load(rules ...isolation.Rule) {
	g.t.Helper()
	g.loadWith(nil, rules...)
}

func (g *guard) loadWith(flows []flow.Rule, rules ...isolation.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.Update(func(b *engine.SnapshotBuilder) error {
		if err := flow.Compile(b, flows); err != nil {
			return err
		}
		return isolation.Compile(b, rules)
	}))
}

// enter makes a call that must run at once.
func (g *guard) enter(opts ...engine.Option) engine.Entry {
	g.t.Helper()
	return trial.Enter(g.t, g.Engine, opts...)
}

// refused makes a call that must be refused at once.
func (g *guard) refused(opts ...engine.Option) {
	g.t.Helper()
	trial.Refused(g.t, g.Engine, core.KindIsolation, opts...)
}

// call is a call on its own goroutine.
type call struct {
	entry engine.Entry
	err   error
	done  chan struct{}
}

// ended reports whether the call has run or was refused.
func (c *call) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *call) exit() {
	<-c.done
	c.entry.Exit()
}

// starts makes a call that must wait, and returns once it waits.
func (g *guard) starts(ctx context.Context, name string, opts ...engine.Option) *call {
	g.t.Helper()
	parked := g.clock.Parked()
	c := g.begins(ctx, name, opts...)
	g.clock.AwaitParked(parked + 1)
	return c
}

// displaces makes a call that must wait, and returns once it waits in place of another.
func (g *guard) displaces(lost *call, name string, opts ...engine.Option) *call {
	g.t.Helper()
	parked := g.clock.Parked()
	c := g.begins(g.t.Context(), name, opts...)
	<-lost.done
	g.clock.AwaitParked(parked)
	return c
}

func (g *guard) begins(ctx context.Context, name string, opts ...engine.Option) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.entry, c.err = g.Enter(ctx, "orders", opts)
		if c.err == nil {
			g.mu.Lock()
			g.ran = append(g.ran, name)
			g.mu.Unlock()
		}
	}()
	return c
}

func (g *guard) waits(name string, opts ...engine.Option) *call {
	g.t.Helper()
	return g.starts(g.t.Context(), name, opts...)
}

func (g *guard) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.ran...)
}

func (g *guard) queued() int64 {
	g.t.Helper()
	r, ok := g.FindResource("orders")
	require.True(g.t, ok)
	return r.Waiting(g.Now())
}

func (g *guard) figures(id string) core.RuleStats {
	g.t.Helper()
	return trial.Figures(g.t, g.Engine, id)
}

func permits(n int) isolation.Rule {
	return isolation.Rule{ID: "permits", Resource: "orders", Threshold: n}
}

func queued(n, queue int, wait time.Duration) isolation.Rule {
	return isolation.Rule{ID: "permits", Resource: "orders", Threshold: n, MaxQueue: queue, MaxWait: wait}
}
