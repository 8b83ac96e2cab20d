package api

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
)

var (
	defaultGuard  atomic.Pointer[Guard]
	makingDefault sync.Mutex
)

// Default returns the Guard that the package functions use, creating it if there is none.
func Default() *Guard {
	if g := defaultGuard.Load(); g != nil {
		return g
	}
	makingDefault.Lock()
	defer makingDefault.Unlock()
	if g := defaultGuard.Load(); g != nil {
		return g
	}
	g, err := New(Config{})
	if err != nil {
		panic(err) // the zero configuration is valid
	}
	defaultGuard.Store(g)
	return g
}

// SetDefault makes g the Guard that the package functions use (nil means a new one, created at the
// next call) and returns a function that restores the previous one. It closes neither.
func SetDefault(g *Guard) (restore func()) {
	old := defaultGuard.Swap(g)
	return func() { defaultGuard.Store(old) }
}

// Entry asks for a resource. A nil error means go: run the guarded code, then call Exit on the
// entry, once. Otherwise the call must not run, and the error is
//
//   - a *[BlockError] if a rule refused it (errors.Is(err, ErrBlocked)); use errors.As, because the
//     error wraps it if the call waited,
//   - one that also wraps the context's error if the context ended while the call waited, or
//     [ErrDraining] if the Guard drains,
//   - one that wraps [ErrInvalid] if the resource has no name, a name is longer than pattern.MaxName
//     bytes, or the count is above stat.MaxUnits; such a call is not counted anywhere.
//
// The context matters only if a rule makes the call wait. A nil context never ends. If the context
// has ended, or its deadline comes before the call's turn, the call is refused immediately. In a
// queue for a permit the turn isn't known, and the call waits until the deadline.
//
// A slot that panics is skipped; see [Guard.Failures]. A panic of the clock or the context reaches
// the caller, and the call holds nothing.
func Entry(ctx context.Context, resource string, opts ...Option) (Admitted, error) {
	e, err := Default().engine.Enter(ctx, resource, opts)
	return Admitted{e}, err
}

// Do runs fn as a guarded call of the resource: enter, run, exit. fn gets a context for nested
// calls. Its error ends the call as [Admitted.Fail] describes. A panic marks the call as failed, and
// continues after the exit. Do returns fn's error, or the error of [Entry].
func Do(ctx context.Context, resource string, fn func(context.Context) error, opts ...Option) error {
	return Default().Do(ctx, resource, fn, opts...)
}

// Call is like [Do], but for functions that return a result.
func Call[T any](ctx context.Context, resource string, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	return CallOn(ctx, Default(), resource, fn, opts...)
}

// Explain returns the decision that the rules would make on a call if it arrived now: which of them
// apply, in the order in which they are asked, and why; each rule's measurement, limit and remaining
// units; and when a refused call would pass. It takes the arguments of [Entry]:
//
//	x, err := api.Explain(api.WithOrigin(ctx, "acme"), "GET /orders", api.Param("user", "u-17"))
//
// Nothing is counted, reserved or kept for it: it creates no resource, caller or value, and doesn't
// show in the tree. The next call gets exactly the explained result, unless another call arrives or
// ends first or its context ends; where a tree is at one of its caps, the next call may find room
// that has become free.
//
// The errors are those of Entry for an invalid call. An Explanation prints as text, on lines of at
// most 80 columns, and can be written as JSON.
func Explain(ctx context.Context, resource string, opts ...Option) (Explanation, error) {
	return Default().Explain(ctx, resource, opts...)
}

// LoadRules replaces the rules that were loaded by hand into the default Guard. If it fails,
// nothing changes; see [Guard.LoadRules].
func LoadRules(set RuleSet) error { return Default().LoadRules(set) }

// LoadRulesFile loads the rules of a file once.
func LoadRulesFile(path string) error { return Default().LoadRulesFile(path) }

// WatchRules loads the rules of files and directories now, and again whenever one changes; see
// [Guard.WatchRules].
func WatchRules(ctx context.Context, paths ...string) error {
	return Default().WatchRules(ctx, paths...)
}

// WatchSource loads the rules of a running store now, and again whenever they change; see
// [Guard.WatchSource].
func WatchSource(ctx context.Context, source rules.Source, opts SourceOptions) error {
	return Default().WatchSource(ctx, source, opts)
}

// OnReload calls f with every outcome of watching rule sources; see [Guard.OnReload].
func OnReload(f func(Reload)) { Default().OnReload(f) }

// AllowOverrides lets later sources replace rules of earlier ones; see [Guard.AllowOverrides].
func AllowOverrides() { Default().AllowOverrides() }

// Rules returns the rules in force, with their defaults filled in.
func Rules() RuleSet { return Default().Rules() }

// Tree returns a copy of the tree with all counters; see [Guard.Tree].
func Tree() inspect.Tree { return Default().Tree() }

// Handler serves tree, nodes and rules over HTTP, read-only; see [Guard.Handler].
func Handler() http.Handler { return Default().Handler() }
