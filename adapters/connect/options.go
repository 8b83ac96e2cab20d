package penstockconnect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Option changes how calls are guarded. Of two that say different things the later one holds.
type Option func(*interceptor)

// both is an option of servers and clients.
func both(change func(*rpc.Guard)) Option {
	return func(to *interceptor) {
		change(&to.server)
		change(&to.client)
	}
}

// On makes calls go through a guard of one's own, not through the default one.
func On(g *api.Guard) Option { return both(func(to *rpc.Guard) { to.API = g }) }

// Context makes calls come in through the named context, see api.WithContext.
func Context(name string) Option { return both(func(to *rpc.Guard) { to.Context = name }) }

// Origin says who makes a call; "" means no particular caller. Without it calls have no origin:
// whether a header can be trusted, only the program can say.
func Origin(of func(context.Context, Call) string) Option {
	return func(to *interceptor) { to.origin = of }
}

// Resource names the resource of a procedure. The name "" lets the call pass unguarded. It is
// asked about every call, also those of health checks and reflection. Names should be few: see
// the caps of api.Config for what happens to others.
func Resource(name func(procedure string) string) Option {
	return func(to *interceptor) { to.resource = name }
}

// Param attaches a value of each call of a server to it, for hotspot rules that name the parameter, as in
// Param("client", nethttp.ClientIP(proxies...)). The value sees the call as a request: its headers are the
// metadata, RemoteAddr is the other end of the connection, and the path is the procedure. "" is no
// value. A client's calls carry none.
func Param(name string, value nethttp.Value) Option {
	return both(func(to *rpc.Guard) { to.Params = append(to.Params, rpc.Param{Name: name, Value: value}) })
}

// WithOptions makes calls with the options that f returns for them, in addition to what the other
// options say: units, priority, arguments, endpoint.
func WithOptions(f func(context.Context, Call) []api.Option) Option {
	return func(to *interceptor) { to.options = f }
}

// FailureCodes makes breakers take these codes for failures, and no others. By default the codes of
// a client are those of a server and ResourceExhausted.
func FailureCodes(failures ...connect.Code) Option {
	set := rpc.Codes(failures...)
	return both(func(to *rpc.Guard) { to.Failures, to.Failure = set, nil })
}

// Failure says which errors breakers take for failures, instead of the rules that the
// package's documentation has, a call that was canceled included. It is not asked about
// panics, nor about refusals.
func Failure(f func(err error) bool) Option { return both(func(to *rpc.Guard) { to.Failure = f }) }
