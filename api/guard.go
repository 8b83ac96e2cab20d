package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/machine"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/slots"
	"github.com/penstock-go/penstock/system"
)

// Config describes a Guard. The zero value is right for production.
type Config struct {
	// Clock tells the time; nil is the machine's monotonic clock. Tests use a
	// [core.ManualClock]. Very dense traffic may want a [core.CoarseClock].
	Clock core.Clock
	// Interval and SampleCount are the length of the second window that the tree
	// shows, and its buckets. 0 means one second, and 2. Rules have intervals of
	// their own.
	Interval    time.Duration
	SampleCount int
	// OccupyTimeout is what a prioritized call waits less than for a borrowed
	// bucket. 0 means 500 ms.
	OccupyTimeout time.Duration
	// ColdFactor divides the threshold of a cold resource where a warm-up rule
	// doesn't say otherwise. 0 means 3.
	ColdFactor int
	// Caps bound the nodes of the tree, and so its memory.
	Caps node.Caps
	// LeakAfter turns on the search for leaks: a call that has not exited so long
	// after it was admitted is reported to the Logger, once, with the stack that asked
	// for it. It costs about a microsecond a call. From 1 ms to 24 h; 0 is off and
	// costs nothing. See [Guard.Leaks].
	LeakAfter time.Duration
	// Logger gets the block log, leaks, reloads and internal failures; nil is
	// slog.Default().
	Logger *slog.Logger
	// Failure says which errors of guarded code are failures: what the tree counts as
	// exceptions, and breakers go by. nil is every error but [context.Canceled]. It is
	// not asked about refusals and errors marked by [Ignore], which are none, and about
	// panics, which are.
	Failure func(error) bool
	// Chain is the order of the slots; nil is slots.Default().
	Chain *core.Chain
	// Machine tells rules the load, the CPU use and the memory use; nil is this
	// machine, see [machine.Local].
	Machine machine.Source
	// OnReload is told of every outcome of WatchRules; see [rules.WatchConfig].
	OnReload func(rules.Reload)
}

// Guard is an engine with its rules: what the package functions use one of, and
// you may have several. It owns no goroutine, except while it watches a rule file;
// where it looks for leaks, and while a rule looks at the machine, it owns a timer.
type Guard struct {
	engine   *core.Engine
	logger   *slog.Logger
	onReload func(rules.Reload)
	set      atomic.Pointer[rules.Set]
	breakers breaker.Listeners

	closing context.Context // ends when the Guard is closed
	close   context.CancelFunc

	mu       sync.Mutex
	watchers []*rules.Watcher
	starting sync.WaitGroup // watchers; none starts after closing has ended under mu
}

// New returns a Guard without rules, or says what in the configuration it can't
// honour.
func New(cfg Config) (*Guard, error) {
	if cfg.Chain == nil {
		cfg.Chain = slots.Default()
	}
	engine, err := core.NewEngine(core.Config{
		Clock:         cfg.Clock,
		Interval:      cfg.Interval,
		SampleCount:   cfg.SampleCount,
		OccupyTimeout: cfg.OccupyTimeout,
		ColdFactor:    cfg.ColdFactor,
		Caps:          cfg.Caps,
		LeakAfter:     cfg.LeakAfter,
		Logger:        cfg.Logger,
		Failure:       cfg.Failure,
		Chain:         cfg.Chain,
		Machine:       cfg.Machine,
	})
	if err != nil {
		return nil, err
	}
	g := &Guard{engine: engine, logger: cfg.Logger, onReload: cfg.OnReload}
	g.closing, g.close = context.WithCancel(context.Background())
	g.set.Store(new(rules.Set))
	return g, nil
}

// Engine is the engine underneath, for those who extend it.
func (g *Guard) Engine() *core.Engine { return g.engine }

// Entry asks for a resource, see the function [Entry].
func (g *Guard) Entry(ctx context.Context, resource string, opts ...core.Option) (core.Entry, error) {
	return g.engine.Enter(ctx, resource, opts)
}

// Do runs fn as a guarded call, see the function [Do].
func (g *Guard) Do(ctx context.Context, resource string, fn func(context.Context) error, opts ...core.Option) error {
	_, err := CallOn(ctx, g, resource, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}, opts...)
	return err
}

// CallOn is [Call] on a Guard of your own.
func CallOn[T any](ctx context.Context, g *Guard, resource string, fn func(context.Context) (T, error), opts ...core.Option) (result T, err error) {
	e, err := g.engine.Enter(ctx, resource, opts)
	if err != nil {
		return result, err
	}
	defer e.ExitOn(&err)
	return fn(e.Context())
}

// LoadRules replaces all rules, or none if one of them can't be honoured. Rules
// that did not change go on as they are; changed ones take over the state of those
// with the same ID.
func (g *Guard) LoadRules(set rules.Set) error {
	return g.engine.Update(func(b *core.RulesetBuilder) error {
		if err := authority.Compile(b, set.Authority); err != nil {
			return err
		}
		if err := system.Compile(b, set.System); err != nil {
			return err
		}
		if err := hotspot.Compile(b, set.Hotspot); err != nil {
			return err
		}
		if err := flow.Compile(b, set.Flow); err != nil {
			return err
		}
		if err := isolation.Compile(b, set.Isolation); err != nil {
			return err
		}
		if err := adaptive.Compile(b, set.Adaptive); err != nil {
			return err
		}
		if err := breaker.Compile(b, set.Breaker, &g.breakers); err != nil {
			return err
		}
		if err := outlier.Compile(b, set.Outlier); err != nil {
			return err
		}
		set := &rules.Set{
			Authority: b.Compiled(core.KindAuthority).(*authority.Table).Rules(),
			System:    b.Compiled(core.KindSystem).(*system.Table).Rules(),
			Hotspot:   b.Compiled(core.KindHotspot).(*hotspot.Table).Rules(),
			Flow:      b.Compiled(core.KindFlow).(*flow.Table).Rules(),
			Isolation: b.Compiled(core.KindIsolation).(*isolation.Table).Rules(),
			Adaptive:  b.Compiled(core.KindAdaptive).(*adaptive.Table).Rules(),
			Breaker:   b.Compiled(core.KindBreaker).(*breaker.Table).Rules(),
			Outlier:   b.Compiled(core.KindOutlier).(*outlier.Table).Rules(),
		}
		b.BeforePublishing(func(int64) { g.set.Store(set) })
		return nil
	})
}

// LoadRulesFile loads the rules of a file once.
func (g *Guard) LoadRulesFile(path string) error {
	set, err := rules.Load(path)
	if err != nil {
		return err
	}
	return g.LoadRules(set)
}

// WatchRules loads the rules of a file now, and again whenever it changes, until
// ctx ends or the Guard is closed. The first load must succeed; later, a file that
// is missing, empty or wrong leaves the last good rules in force, and is logged.
func (g *Guard) WatchRules(ctx context.Context, path string) error {
	g.mu.Lock()
	if g.closing.Err() != nil {
		g.mu.Unlock()
		return errClosed
	}
	g.starting.Add(1)
	g.mu.Unlock()
	defer g.starting.Done()

	// Without the lock: the first load takes a while and tells OnReload, which may
	// watch another file.
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.closing, cancel)
	w, err := rules.Watch(ctx, path, g.LoadRules, rules.WatchConfig{OnReload: g.onReload, Logger: g.logger})
	if err != nil || g.closing.Err() != nil {
		stop()
		cancel()
		if err == nil {
			w.Close()
			err = errClosed
		}
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = append(g.watchers, w)
	return nil
}

// Rules are the rules in force, with their defaults written out.
func (g *Guard) Rules() rules.Set {
	set := *g.set.Load()
	set.Authority = slices.Clone(set.Authority)
	set.System = slices.Clone(set.System)
	set.Hotspot = hotspot.Clone(set.Hotspot)
	set.Flow = slices.Clone(set.Flow)
	set.Isolation = slices.Clone(set.Isolation)
	set.Adaptive = slices.Clone(set.Adaptive)
	set.Breaker = slices.Clone(set.Breaker)
	set.Outlier = slices.Clone(set.Outlier)
	return set
}

// Tree is a copy of the tree with all figures: each counter exact, the counters of
// a node not one instant.
func (g *Guard) Tree() inspect.Tree { return inspect.Snapshot(g.engine) }

// Leaks lists the calls that have not exited for at least Config.LeakAfter, the
// oldest first, each with the stack that asked for it; none if that is 0.
func (g *Guard) Leaks() []core.Leak { return g.engine.Leaks() }

// Handler serves tree, nodes and rules over HTTP, read-only. Who may reach it is
// the caller's choice: mount it on a loopback listener unless you mean otherwise.
func (g *Guard) Handler() http.Handler { return inspect.Handler(g.engine, g.Rules) }

// Close stops watching rule files, flushes the block log and ends the reports of
// leaks. When it returns no goroutine remains. Calls are still judged and counted.
// Closing twice is fine.
func (g *Guard) Close() error {
	g.mu.Lock()
	g.close()
	g.mu.Unlock()
	g.starting.Wait()
	g.mu.Lock()
	watchers := g.watchers
	g.watchers = nil
	g.mu.Unlock()
	for _, w := range watchers {
		w.Close()
	}
	return g.engine.Close()
}
