// Package rpc holds the common parts of adapters of RPC frameworks: which calls are guarded, which
// calls are counted below them, and which ends are failures. Codes are gRPC's numbers. Everything
// here is safe for concurrent use unless stated otherwise.
package rpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Unknown is the resource of all calls of methods that a server doesn't know.
const Unknown = "__unmatched__"

// Unguarded reports whether a method passes unguarded by default: health checks and reflection, by
// their exact names, since clients may make up similar ones.
func Unguarded(fullMethod string) bool {
	switch fullMethod {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return true
	}
	return false
}

// Inbound marks the calls of servers. On a net/http server a call waits only as long as the
// WriteTimeout leaves time for a response.
var Inbound = api.InboundWithin(response.TimeToWrite)

// Codes returns a set of codes, one bit each. Codes above 31 have no meaning and count as 31.
func Codes[C ~uint32](of ...C) (set uint32) {
	for _, c := range of {
		set |= 1 << min(uint32(c), 31)
	}
	return set
}

// The codes that breakers count as failures by default: Unknown, DeadlineExceeded, Internal,
// Unavailable and DataLoss, for clients also ResourceExhausted.
const (
	ServerFailures uint32 = 1<<2 | 1<<4 | 1<<13 | 1<<14 | 1<<15
	ClientFailures        = ServerFailures | 1<<8
)

// Guard holds an adapter's settings. Failures and CodeOf are required.
type Guard struct {
	API      *api.Guard // nil means the default guard
	Context  string
	Failures uint32             // a set of codes
	CodeOf   func(error) uint32 // the code that the framework gives an error
	Failure  func(error) bool   // replaces Failures unless nil
	// RetryAfter returns how long a client's server wants to be left alone, 0 if it doesn't say. It is
	// called for the errors of an overloaded server, with the context of the call. nil means that the
	// calls are a server's.
	RetryAfter func(context.Context, error) time.Duration
	Params     []Param                    // attached to servers' calls
	Level      func(*http.Request) string // the criticality that a server's caller names; nil means that none is read
	AtMost     api.Level                  // of Level
	Refunds    []string                   // units that calls give back if they fail before their first message
	Abort      error                      // handlers panic with it when the client may be gone; nil means that they never do
}

// Param is a value that calls carry under a name, computed from their requests; "" means none.
type Param struct {
	Name  string
	Value func(*http.Request) string
}

// Request returns a server's call as the values of [Param] see it: an HTTP request with the method
// as its path. remote is the other end, local the server's own; nil means unknown.
func Request(ctx context.Context, fullMethod string, remote, local net.Addr, header http.Header) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: fullMethod}, Header: header, RemoteAddr: "unknown"}
	if remote != nil {
		r.RemoteAddr = remote.String()
	}
	if local != nil {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, local)
	}
	return r.WithContext(ctx)
}

// CriticalityKey is the key of the metadata that name the level of a call.
const CriticalityKey = "criticality"

// Received returns the context of a server's call with the level that its caller names, if that is
// read, and the options with its parameters. It asks for the request only for these.
func (g *Guard) Received(ctx context.Context, opts []api.Option, request func() *http.Request) (context.Context, []api.Option) {
	if len(g.Params) == 0 && g.Level == nil {
		return ctx, opts
	}
	r := request()
	for _, p := range g.Params {
		if value := p.Value(r); value != "" {
			opts = append(opts, api.Param(p.Name, value))
		}
	}
	if g.Level == nil {
		return ctx, opts
	}
	guard := g.API
	if guard == nil {
		guard = api.Default()
	}
	return guard.WithReceivedCriticality(ctx, g.Level(r), g.AtMost), opts
}

// Call is an admitted call. Except for its context, only the goroutine that makes or serves the
// call may use it.
type Call struct {
	guard *Guard
	ctx   context.Context // the caller's
	entry api.Admitted
	scope scope
	ended bool // the guarded code has returned

	answered atomic.Bool // see Answered
}

// scope is the context of a handler. Calls of the handler are counted below its own, and refusals
// that it turns into a status are reported here.
type scope struct {
	context.Context
	refused atomic.Bool
}

// Value returns the context's value, and itself as the listener of [refusal.Tell].
func (s *scope) Value(key any) any {
	if key == refusal.ListenerKey() {
		return s
	}
	return s.Context.Value(key)
}

// Refused records that the handler responds with a refusal, which counts as a failure neither of
// the handler nor of an enclosing guard.
func (s *scope) Refused(err error) {
	s.refused.Store(true)
	refusal.Tell(s.Context, err)
}

// Enter starts a call of the resource by origin; "" means no particular caller. Its error is that
// of [api.Entry].
func (g *Guard) Enter(ctx context.Context, name, origin string, opts ...api.Option) (*Call, error) {
	c := &Call{guard: g, ctx: ctx}
	if g.Context != "" {
		ctx = api.WithContext(ctx, g.Context)
	}
	if origin != "" {
		ctx = api.WithOrigin(ctx, origin)
	}
	var err error
	if g.API != nil {
		c.entry, err = g.API.Entry(ctx, name, opts...)
	} else {
		c.entry, err = api.Entry(ctx, name, opts...)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Below returns the context for a server's handler.
func (c *Call) Below() context.Context {
	c.scope.Context = c.entry.Context()
	return &c.scope
}

// Answered records that a message of a stream has come from the server or gone to the client. If
// the caller cancels the call after that, the stream has ended normally.
func (c *Call) Answered() {
	if !c.answered.Load() {
		c.answered.Store(true)
	}
}

// End records how the call ended; err is the error that the handler or the client's invoker returned.
func (c *Call) End(err error) {
	c.ended = true
	if err != nil && c.guard.CodeOf(err) != 0 {
		c.refund()
	}
	c.entry.Fail(c.overloaded(err, c.failed(err)))
}

// The codes of a server that had too much to do, or didn't answer in time.
const overloadedCodes uint32 = 1<<refusal.DeadlineExceeded | 1<<refusal.ResourceExhausted | 1<<refusal.Unavailable

// overloaded marks the failure of a client's call, if its server had too much to do. err is the
// call's own error, which need not be a failure.
func (c *Call) overloaded(err, failure error) error {
	g := c.guard
	if err == nil || g.RetryAfter == nil || overloadedCodes&(1<<min(g.CodeOf(err), 31)) == 0 {
		return failure
	}
	var retryAfter time.Duration
	if g.CodeOf(err) != refusal.DeadlineExceeded {
		retryAfter = g.RetryAfter(c.ctx, err)
	}
	if failure == nil {
		failure = api.Ignore(err)
	}
	return api.Overloaded(failure, retryAfter)
}

// Exit ends the call. Defer it directly, so that it sees a panic, which continues. Unless the
// caller has disconnected, it does not recover, so the stack is kept.
func (c *Call) Exit() {
	if !c.ended {
		c.refund()
	}
	switch {
	case c.ended:
	case c.guard.Abort == nil || c.ctx.Err() == nil:
		c.entry.Fail(ErrPanicked)
	default:
		p := recover()
		if err, ok := p.(error); !ok || !errors.Is(err, c.guard.Abort) {
			c.entry.Fail(ErrPanicked)
		} else if errors.Is(c.ctx.Err(), context.Canceled) {
			c.entry.Fail(context.Canceled)
		}
		if p != nil { // or runtime.Goexit ran
			defer panic(p)
		}
	}
	c.entry.Exit()
}

// refund gives back the units of Refunds unless a message was sent, the call has settled them, or its
// context has ended: its caller may have left on purpose.
func (c *Call) refund() {
	if len(c.guard.Refunds) == 0 || c.answered.Load() || c.ctx.Err() != nil {
		return
	}
	for _, unit := range c.guard.Refunds {
		c.entry.Settle(unit, 0)
	}
}

// failed returns the error for [api.Admitted.Fail], or nil if the outcome is not a failure. Fail
// itself checks whether the call was canceled.
func (c *Call) failed(err error) error {
	switch g := c.guard; {
	case err == nil:
		return nil
	case c.scope.refused.Load(), refusal.Of(err).Reason != refusal.None:
		return api.ErrBlocked
	case g.Failure != nil:
		if !g.Failure(err) {
			return nil
		}
		return api.Certain(err)
	case errors.Is(c.ctx.Err(), context.Canceled):
		if c.answered.Load() {
			return nil
		}
		return err
	case g.Failures&(1<<min(g.CodeOf(err), 31)) == 0:
		return nil
	}
	if errors.Is(err, context.Canceled) { // something else was canceled; the engine would count it as no failure
		return errors.New(err.Error())
	}
	return err
}

// ErrPanicked is the error that breakers see for a panic.
var ErrPanicked = api.Certain(errors.New("the handler panicked"))
