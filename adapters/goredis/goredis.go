// Package penstockgoredis guards every kind of go-redis client: of a single server, a cluster, a
// ring, or sentinels. One line does it:
//
//	client.AddHook(penstockgoredis.Hook("cache"))
//
// A command that no rule refuses is sent as an outbound call of the resource "redis cache", and so
// is a pipeline or a transaction: one round trip is one call. A call that a rule makes wait waits
// before it takes a connection, so a concurrency limit also keeps the pool free.
//
// # Names
//
// The resource's name is "redis" and the name given to the hook, the same for all commands;
// [PerCommand] makes each command a resource, "redis cache get". Keys are never part of it, and
// commands unknown to Redis are [Other], so callers can't make resources without bound. Commands
// that go-redis sends for itself are not guarded: the handshake of a connection, and UNWATCH and
// DISCARD, without which a connection would return to the pool with watched keys.
//
// # Refusals
//
// A refusal is returned as the error of the command, and of each command in a pipeline: errors.Is
// finds api.ErrBlocked and errors.As the *api.BlockError. go-redis does not retry it. Nothing of a
// refused transaction has been sent.
//
// # Failures
//
// Breakers count network failures: no connection, none free in the pool, a timeout, a broken
// connection; and replies of a server that can't serve, such as LOADING, CLUSTERDOWN or OOM, see
// [Unable]. They don't count redis.Nil, a transaction that lost to another (redis.TxFailedErr), or
// replies about the program's own mistakes. They leave out commands that the program has canceled.
//
// # Blocking commands
//
// A command that waits at the server for data (BLPOP, XREAD with BLOCK, WAIT) has no response time;
// see api.LongLived. It counts towards concurrency limits while it waits.
//
// # Limits
//
// Subscriptions are not guarded: go-redis calls no hook for them. Retries by go-redis are one call:
// the hook is above them. A pipeline of a cluster's client is one call, no matter how many nodes it
// goes to. Add the hook to the client, or to its nodes (ClusterOptions.NewClient), but not to both:
// each counts a call.
//
// Everything here is safe for concurrent use.
//
// The page docs/adapters/goredis.md has examples.
package penstockgoredis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how commands are guarded. If two options conflict, the later one wins.
type Option func(*hook)

// On uses g instead of the default guard.
func On(g *api.Guard) Option { return func(to *hook) { to.api = g } }

// PerCommand makes each command a resource, such as "redis cache get". Pipelines are "redis cache
// pipeline", and transactions "redis cache multi".
func PerCommand() Option { return func(to *hook) { to.perCommand = true } }

// Resource names the resource of a command, or of a pipeline's commands; "" lets them pass
// unguarded. Use few names: the caps in api.Config limit them.
func Resource(name func(cmds []redis.Cmder) string) Option {
	return func(to *hook) { to.resource = name }
}

// WithOptions makes calls with the options that f returns for them: priority, arguments, units.
// Otherwise a call takes one unit, even for a pipeline, since a rule would never admit one that has
// more commands than the rule has units. Where that can't happen, use Units to count each command:
//
//	func(_ context.Context, cmds []redis.Cmder) []api.Option { return []api.Option{api.Units(len(cmds))} }
func WithOptions(f func(ctx context.Context, cmds []redis.Cmder) []api.Option) Option {
	return func(to *hook) { to.options = f }
}

// Failure decides which errors breakers count as failures, instead of the rules in the package's
// documentation. It does not run for panics or refusals. For a pipeline it gets the error of each
// command, until one is a failure.
func Failure(f func(error) bool) Option { return func(to *hook) { to.failure = f } }

// Other replaces commands that neither Redis nor one of its modules has.
const Other = "_OTHER"

type hook struct {
	api        *api.Guard // nil means the default guard
	name       string     // of the resource, or its prefix
	perCommand bool
	resource   func(cmds []redis.Cmder) string
	options    func(ctx context.Context, cmds []redis.Cmder) []api.Option
	failure    func(error) bool
}

// Hook is for a client's method AddHook. The name distinguishes its resource from those of other
// clients; it may be "" if there are none: "redis cache", "redis".
func Hook(name string, opts ...Option) redis.Hook {
	h := &hook{name: strings.TrimSpace("redis " + name)}
	for _, o := range opts {
		o(h)
	}
	return h
}

// DialHook guards nothing: a connection is made for a command, and its failure is the command's.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook guards single commands.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		one := [1]redis.Cmder{cmd}
		return h.guard(ctx, one[:], false, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook guards pipelines and transactions.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.guard(ctx, cmds, true, func() error { return next(ctx, cmds) })
	}
}

func (h *hook) guard(ctx context.Context, cmds []redis.Cmder, pipeline bool, next func() error) error {
	name := h.nameOf(cmds, pipeline)
	if name == "" {
		return next()
	}
	e, err := h.enter(ctx, name, cmds)
	if err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err) // for code that looks at single commands of a pipeline
		}
		return err
	}
	defer e.Exit()
	returned := false
	defer func() {
		if !returned {
			e.Fail(errPanicked)
		}
	}()
	err = next()
	returned = true
	e.Fail(h.failed(ctx, cmds, err))
	return err
}

func (h *hook) enter(ctx context.Context, name string, cmds []redis.Cmder) (api.Admitted, error) {
	var opts []api.Option
	if slices.ContainsFunc(cmds, blocks) {
		opts = append(opts, api.LongLived())
	}
	if h.options != nil {
		opts = append(opts, h.options(ctx, cmds)...)
	}
	if h.api != nil {
		return h.api.Entry(ctx, name, opts...)
	}
	return api.Entry(ctx, name, opts...)
}

// nameOf returns the resource, "" for commands that pass unguarded.
func (h *hook) nameOf(cmds []redis.Cmder, pipeline bool) string {
	switch {
	case own(cmds):
		return ""
	case h.resource != nil:
		return h.resource(cmds)
	case !h.perCommand:
		return h.name
	case cmds[0].Name() == "multi":
		return h.name + " multi"
	case pipeline:
		return h.name + " pipeline"
	}
	return h.name + " " + command(cmds[0].Name())
}

// own reports whether go-redis sends all of the commands for itself, to set up or clean a
// connection.
func own(cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "hello", "auth", "select", "client", "readonly", "readwrite", "asking", "unwatch", "discard", "reset", "quit":
		default:
			return false
		}
	}
	return true
}

// blocks reports whether the server may hold back the reply until there is data.
func blocks(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop", "wait", "waitaof", "monitor":
		return true
	case "xread", "xreadgroup":
		for _, arg := range cmd.Args() { // streams come last, and may have any name
			text, _ := arg.(string)
			switch strings.ToLower(text) {
			case "block":
				return true
			case "streams":
				return false
			}
		}
	}
	return false
}

// failed returns the error for [api.Admitted.Fail], or nil if no command failed. One failed command
// of a pipeline is enough, regardless of the results before it. Fail itself checks whether the call
// was canceled.
func (h *hook) failed(ctx context.Context, cmds []redis.Cmder, err error) error {
	if err == nil {
		return nil
	}
	failure := h.failureOf(ctx, err)
	for _, cmd := range cmds {
		if failure != nil && !errors.Is(failure, api.ErrBlocked) {
			break
		}
		if err := cmd.Err(); err != nil {
			failure = cmp.Or(h.failureOf(ctx, err), failure)
		}
	}
	return failure
}

// failureOf is like failed, but for a single error.
func (h *hook) failureOf(ctx context.Context, err error) error {
	switch {
	case refusal.Of(err).Reason != refusal.None: // from another hook
		return api.ErrBlocked
	case h.failure != nil:
		if !h.failure(err) {
			return nil
		}
		return api.Certain(err)
	case errors.Is(err, redis.ErrClosed), errors.Is(err, context.Canceled) && ctx.Err() == nil:
		return nil
	}
	if _, reply := errors.AsType[redis.Error](err); reply && !Unable(err) {
		return nil
	}
	return err
}

// Unable reports whether err is the reply of a server that can't serve anything in its current
// state: it is loading its data, has no memory or too many clients, its cluster is incomplete, or a
// script keeps it busy.
func Unable(err error) bool {
	for _, prefix := range []string{"LOADING ", "BUSY ", "OOM ", "MISCONF ", "CLUSTERDOWN ", "MASTERDOWN ", "TRYAGAIN ",
		"NOREPLICAS ", "READONLY ", "max number of clients"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

var errPanicked = api.Certain(errors.New("the command panicked"))
