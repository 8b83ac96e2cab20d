package penstockkratos

import (
	"context"

	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/grpc/codes"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Option changes how calls are guarded. Of two that say different things the later one holds.
type Option func(*guard)

// On makes calls go through a guard of one's own, not through the default one.
func On(g *api.Guard) Option { return func(to *guard) { to.API = g } }

// Context makes calls come in through the named context, see api.WithContext.
func Context(name string) Option { return func(to *guard) { to.Context = name } }

// Origin says who makes a call; "" means no particular caller. Without it calls have no origin:
// whether a header can be trusted, only the program can say.
func Origin(of func(context.Context, transport.Transporter) string) Option {
	return func(to *guard) { to.origin = of }
}

// Resource names the resource of a call that has a name by itself, as "/package.Service/Method". The name "" lets
// the call pass unguarded. It is asked about every call, also those of health checks and
// reflection. Names should be few: see the caps of api.Config for what happens to others.
func Resource(name func(name string) string) Option { return func(to *guard) { to.resource = name } }

// Param attaches a value of each call of a server to it, for hotspot rules that name the parameter, as in
// Param("client", nethttp.ClientIP(proxies...)). By HTTP the value sees the request, and a call by gRPC as one: its headers are the
// headers, RemoteAddr is the other end of the connection, and the path is the full method. "" is no
// value. A client's calls carry none.
func Param(name string, value nethttp.Value) Option {
	return func(to *guard) { to.Params = append(to.Params, rpc.Param{Name: name, Value: value}) }
}

// WithOptions makes calls with the options that f returns for them, in addition to what the other
// options say: units, priority, arguments, endpoint.
func WithOptions(f func(ctx context.Context, t transport.Transporter, req any) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// FailureCodes makes breakers take these codes for failures, and no others. By default the codes of
// a client are those of a server and ResourceExhausted.
func FailureCodes(failures ...codes.Code) Option {
	set := rpc.Codes(failures...)
	return func(to *guard) { to.Failures, to.Failure = set, nil }
}

// Failure says which errors breakers take for failures, instead of the rules that the
// package's documentation has, a call that was canceled included. It is not asked about
// panics, nor about refusals.
func Failure(f func(err error) bool) Option { return func(to *guard) { to.Failure = f } }
