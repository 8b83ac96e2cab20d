package api

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

// Guard admits calls and holds the rules: loaded by hand and from files that it watches. The
// package functions use a default one, and you may have several, created by [New]. It owns
// goroutines only while it watches files or sources, shares limits in a cluster, or asks for limits, and timers
// while it detects leaks or reads the machine, has log lines to write, or has listeners to
// refusals. Safe for concurrent use.
type Guard struct {
	engine *engine.Engine
	config Config        // with its defaults
	loader *rules.Loader // combines the rules of all sources into one set, which load puts into force
	set    atomic.Pointer[RuleSet]

	sharing    sync.Mutex
	membership *membership          // in a cluster; guarded by sharing, and changed by loads, one at a time
	retiring   map[*membership]bool // earlier memberships under which calls still run; guarded by sharing
	left       bool                 // all have ended, permanently; guarded by sharing

	warning sync.Mutex
	warned  map[string]bool // the warnings of the last load
}

// New returns a Guard without rules. The error names the invalid field of the configuration.
func New(cfg Config) (*Guard, error) {
	engine, err := cfg.engine()
	if err != nil {
		return nil, err
	}
	g := &Guard{engine: engine, config: cfg.withDefaultsOf(engine.Config())}
	g.loader = rules.NewLoader(g.load, engine.Logger())
	g.loader.OnLoaded(g.lint)
	if cfg.AllowWritable {
		g.loader.AllowWritable()
	}
	return g, g.load(RuleSet{}) // every family has its table from the start
}

// Engine returns the engine underneath, for packages of this module. Its type is internal, and may
// change in any release.
func (g *Guard) Engine() *engine.Engine { return g.engine }

// Entry asks for a resource; see the function [Entry].
func (g *Guard) Entry(ctx context.Context, resource string, opts ...Option) (Admitted, error) {
	e, err := g.engine.Enter(ctx, resource, opts)
	return Admitted{e}, err
}

// Do runs fn as a guarded call; see the function [Do].
func (g *Guard) Do(ctx context.Context, resource string, fn func(context.Context) error, opts ...Option) error {
	_, err := CallOn(ctx, g, resource, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}, opts...)
	return err
}

// CallOn is like [Call], but on the given Guard.
func CallOn[T any](ctx context.Context, g *Guard, resource string, fn func(context.Context) (T, error), opts ...Option) (result T, err error) {
	e, err := g.Entry(ctx, resource, opts...)
	if err != nil {
		return result, err
	}
	defer e.ExitOn(&err)
	return fn(e.Context())
}

// Explain returns what the rules would decide for a call if it arrived now, and counts nothing; see
// the function [Explain].
func (g *Guard) Explain(ctx context.Context, resource string, opts ...Option) (Explanation, error) {
	return g.engine.Explain(ctx, resource, opts)
}

// Tree returns a copy of the tree with all counters. Each counter is exact, but the counters of a
// node are not read at one instant.
func (g *Guard) Tree() inspect.Tree { return inspect.Snapshot(g.engine) }

// Leaks lists the calls that have not exited for at least Config.LeakAfter, the oldest first, each
// with the stack of its caller; none if LeakAfter is 0.
func (g *Guard) Leaks() []core.Leak { return g.engine.Leaks() }

// Handler serves tree, nodes and rules over HTTP, read-only. It has no access control: mount it on
// a loopback listener unless it should be public.
func (g *Guard) Handler() http.Handler { return inspect.Handler(g.engine, g.Rules) }

// Drain ends all waits for rules, permanently. A server calls it when it begins to shut down;
// otherwise the calls in its queues delay the shutdown:
//
//	server.RegisterOnShutdown(func() { _ = guard.Drain(ctx) })
//
// Calls that wait are refused immediately, and so is every later call that would have to wait. Their
// errors wrap [ErrDraining]; adapters respond with 503, or Unavailable, and say when to retry. Calls
// that need not wait still run.
//
// It returns nil once no call waits or runs, or the context's error if the context ends first; a nil
// context never ends. A call, long-lived or not, runs from Entry to Exit if the slot statistic
// counts it; a guarded call that calls Drain waits for itself. Drain polls at intervals of up to 100
// ms of real time, regardless of the Guard's clock. It may be called several times. Safe for
// concurrent use.
func (g *Guard) Drain(ctx context.Context) error { return g.engine.Drain(ctx) }

// Close stops watching rule files and sources, leaves the cluster, flushes the block log and ends
// leak detection. It waits for a listener that blocks, and deadlocks if a listener calls it. When it
// returns, listeners are no longer called, and no goroutine is left unless a store or Config.Limits
// hangs. The error is always nil.
//
// Afterwards the rules in force still apply to calls, and calls are counted; counters can be read,
// and rules loaded by hand, but nothing is watched. Quotas refuse all calls if Config.QuotaLog keeps
// them. Load, CPU and memory use are no longer read: rules that depend on them keep the last readings.
// Closing twice is fine.
func (g *Guard) Close() error {
	g.loader.Close()
	g.leave()
	return g.engine.Close()
}
