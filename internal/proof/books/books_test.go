package books

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
)

func TestMain(m *testing.M) { Main(m) }

func newEngine(t *testing.T, caps node.Caps, extra ...engine.Slot) (*engine.Engine, *clocks.Manual) {
	t.Helper()
	clock := clocks.NewManual(time.Unix(1_700_000_000, 0))
	chain := (*engine.Chain)(slots.Default())
	for _, s := range extra {
		chain = chain.With(s, engine.After("flow"))
	}
	e, err := engine.NewEngine(engine.Config{Clock: clock, Chain: chain, Caps: caps, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		return flow.Compile(b, []flow.Rule{
			{Resource: "orders", Threshold: 2},
			{Resource: "orders", Threshold: 10, Metric: flow.Concurrency},
			{Resource: "queue", Threshold: 10, Behavior: flow.Throttle},
		})
	}))
	return e, clock
}

// whats strips the numbers from problems.
func whats(problems []string) (all []string) {
	for _, p := range problems {
		what, _, _ := strings.Cut(strings.ReplaceAll(p, ": ", "|"), ", should")
		all = append(all, what)
	}
	return all
}

// An open call shows on each of its nodes and in its semaphore, and nowhere once it has exited.
func TestUnsettledSeesAnOpenCall(t *testing.T) {
	e, _ := newEngine(t, node.Caps{})
	entry, err := e.Enter(engine.WithOrigin(engine.WithContext(t.Context(), "web"), "app"), "orders", []engine.Option{engine.Inbound(), engine.Units(2)})
	require.NoError(t, err)
	got := whats(Unsettled(e))
	for _, where := range []string{node.InboundName, "orders", "web > orders", "orders from app"} {
		for _, what := range []string{"calls in flight|1", "units in flight|2",
			"calls that passed minus completed calls|1", "units that passed minus completed units|2"} {
			assert.Contains(t, got, where+"|"+what)
		}
	}
	assert.Contains(t, got, "orders|permits in use|2")
	assert.Contains(t, got, "orders|permits held|2")
	entry.Exit()
	assert.Empty(t, Unsettled(e))
}

func TestUnsettledSeesTheOverflow(t *testing.T) {
	e, _ := newEngine(t, node.Caps{Resources: 1, Origins: 1})
	var open []engine.Entry
	for _, name := range []string{"a", "b"} {
		for _, origin := range []string{"one", "two"} {
			entry, err := e.Enter(engine.WithOrigin(t.Context(), origin), name, nil)
			require.NoError(t, err)
			open = append(open, entry)
		}
	}
	got := whats(Unsettled(e))
	assert.Contains(t, got, node.OverflowName+"|calls in flight|2")
	assert.Contains(t, got, "a from "+node.OverflowName+"|calls in flight|1")
	for _, entry := range open {
		entry.Exit()
	}
	assert.Empty(t, Unsettled(e))
}

// Unsettled reports a waiting call and everything that it holds.
func TestUnsettledSeesACallThatWaits(t *testing.T) {
	e, clock := newEngine(t, node.Caps{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			entry, err := e.Enter(t.Context(), "queue", nil)
			assert.NoError(t, err)
			entry.Exit()
		}
	}()
	clock.AwaitParked(1)
	assert.Contains(t, whats(Unsettled(e)), "engine|calls that wait|1")
	clock.Advance(time.Second)
	<-done
	assert.Empty(t, Unsettled(e))
}

// A permit that was acquired and never released, and units counted in a bucket that will not
// expire, show without any call in flight.
func TestUnsettledSeesWhatNobodyHolds(t *testing.T) {
	e, clock := newEngine(t, node.Caps{})
	r, ok := e.FindResource("orders")
	require.True(t, ok)
	g := r.NeedSemaphore(nil)
	g.Acquire(0, 3)
	assert.Equal(t, []string{"orders|permits in use|3", "orders|permits held|3"}, whats(Unsettled(e)))
	g.Release(0, 4)
	assert.Equal(t, []string{"orders|permits in use|-1", "orders|permits held|-1"}, whats(Unsettled(e)))
	g.Acquire(0, 1)
	assert.Empty(t, Unsettled(e))

	later := clock.Now() + int64(49*time.Hour)
	w := r.Meters().Windows()[0]
	w.AddAt(0, later, later, 5)
	assert.Equal(t, []string{"orders|units in a window two days later|5"}, whats(Unsettled(e)))
	w.AddAt(0, later, later+int64(time.Second), 7)
	assert.Equal(t, []string{"orders|units borrowed|7", "orders|units in a window two days later|5"}, whats(Unsettled(e)))
}

// Keep reports to its own test, and Main ignores an engine that has been garbage-collected.
func TestKeep(t *testing.T) {
	e, _ := newEngine(t, node.Caps{})
	entry, err := e.Enter(t.Context(), "orders", nil)
	require.NoError(t, err)
	for _, failed := range []bool{false, true} {
		r := &recorder{TB: t, failed: failed}
		Keep(r, e)
		assert.Empty(t, r.told)
		r.end()
		assert.Equal(t, !failed, len(r.told) > 0)
	}
	assert.NotEmpty(t, unsettled(nil), "Main would tell as well")
	entry.Exit()
	assert.Empty(t, unsettled([]*engine.Engine{e}))
}

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	failed bool
	ends   []func()
	told   []any
}

func (r *recorder) Cleanup(f func())  { r.ends = append(r.ends, f) }
func (r *recorder) Failed() bool      { return r.failed }
func (r *recorder) Error(args ...any) { r.told = append(r.told, args...) }
func (r *recorder) end() {
	for _, f := range r.ends {
		f()
	}
}

// A goroutine that is ending gets time; others are reported. There are more of them than other
// tests can have left running.
func TestStrayGoroutines(t *testing.T) {
	const many = 100
	before := runtime.NumGoroutine()
	stop := make(chan struct{})
	for range many {
		go func() { <-stop }()
	}
	assert.Len(t, strayWithin(before, 0), 1)
	close(stop)
	assert.Empty(t, stray(before, time.Now()))
}
