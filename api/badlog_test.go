package api_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/observe/metriclog"
	"github.com/penstock-go/penstock/rules"
)

// panics is a log handler that counts the records and panics at each.
type panics struct {
	slog.Handler
	records *atomic.Int64
}

func (h panics) Enabled(context.Context, slog.Level) bool { return true }

func (h panics) Handle(context.Context, slog.Record) error {
	h.records.Add(1)
	panic("disk full")
}

// fickle is a store that may be unreachable, and that fails its check.
type fickle struct {
	*cluster.Memory
	away bool
}

func (s *fickle) Start(ctx context.Context, batch []store.Command, done func()) {
	if !s.away {
		s.Memory.Start(ctx, batch, done)
	}
}

func (s *fickle) Probe(context.Context) error { return errors.New("not as it should be") }

// Timers and goroutines of the package write logs: the block log, leaks, the cluster's store, and
// the metric log. A handler that panics there ends none of them, and doesn't affect Close.
func TestALogHandlerThatPanics(t *testing.T) {
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepAdvance)
	store := &fickle{Memory: cluster.NewMemory(clock)}
	var records atomic.Int64
	g, err := api.New(api.Config{
		Clock: clock, Logger: slog.New(panics{slog.DiscardHandler, &records}), LeakAfter: time.Second,
		Cluster: cluster.Config{Store: store}, Chain: metriclog.Chain(),
	})
	require.NoError(t, err)
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow: []flow.Rule{
			{ID: "shared", Resource: "orders", Threshold: 1000, Cluster: cluster.Rule{Scope: cluster.Global}},
			{ID: "none", Resource: "closed", Threshold: 0},
		},
	}))
	dir := t.TempDir()
	log, err := metriclog.Start(g, metriclog.Config{Dir: dir, App: "a"})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	leak, err := g.Entry(t.Context(), "leak")
	require.NoError(t, err)
	grown := func(what string) {
		t.Helper()
		assert.Positive(t, records.Swap(0), what)
	}
	records.Store(0)
	clock.Advance(3 * time.Second)
	grown("a leak, and a metric log without a directory")
	for range 3 {
		_, err := g.Entry(t.Context(), "closed")
		require.ErrorIs(t, err, api.ErrBlocked)
	}
	grown("the block log")
	clock.Advance(3 * time.Second)
	grown("the rest of it")
	store.away = true
	for range 10 {
		_ = g.Do(t.Context(), "orders", func(context.Context) error { return nil })
		clock.Advance(2 * time.Second)
	}
	grown("the store is away")
	store.away = false
	for range 40 {
		_ = g.Do(t.Context(), "orders", func(context.Context) error { return nil })
		clock.Advance(2 * time.Second)
	}
	grown("the store is back")
	for range 3 {
		_, _ = g.Entry(t.Context(), "closed")
	}
	records.Store(0)
	leak.Exit()
	assert.NotPanics(t, func() { assert.NoError(t, g.Close()) })
	grown("what the block log had not written")
	assert.Positive(t, g.Engine().Failures())
	assert.NotPanics(t, func() { _ = log.Close() })
}

// talkative is a store whose client writes its own log lines.
type talkative struct {
	*cluster.Memory
	log *slog.Logger
}

func (s *talkative) LogTo(log *slog.Logger) { s.log = log }

// A store's client logs to the Guard's Logger.
func TestTheStoreLogsToTheGuard(t *testing.T) {
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	clock.SetSleep(api.SleepAdvance)
	talking := &talkative{Memory: cluster.NewMemory(clock)}
	g, err := api.New(api.Config{
		Clock: clock, Logger: slog.New(slog.DiscardHandler),
		Stores: map[string]func(string) (store.Store, error){"talk": func(string) (store.Store, error) { return talking, nil }},
	})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{
		Cluster: []rules.Cluster{{Redis: "talk://here"}},
		Flow:    []flow.Rule{{ID: "all", Resource: "orders", Threshold: 1000, Cluster: cluster.Rule{Scope: cluster.Global}}},
	}))
	assert.Same(t, g.Engine().Logger(), talking.log)
}
