package penstockkratos

import (
	"context"

	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/grpc/codes"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Option changes how calls are guarded. If two options conflict, the later one wins.
type Option func(*guard)

// On uses g instead of the default guard.
func On(g *api.Guard) Option { return func(to *guard) { to.API = g } }

// Context enters calls through the named context; see api.WithContext.
func Context(name string) Option { return func(to *guard) { to.Context = name } }

// Origin sets the caller of each call; "" means no particular caller. Without it calls have no
// origin: only the program knows whether a header can be trusted.
func Origin(of func(context.Context, transport.Transporter) string) Option {
	return func(to *guard) { to.origin = of }
}

// Resource names the resource of a call that already has a name, such as "/package.Service/Method".
// The name "" lets the call pass unguarded. f runs for every call, including health checks and
// reflection. Use few names: the caps in api.Config limit them.
func Resource(name func(name string) string) Option { return func(to *guard) { to.resource = name } }

// Param attaches a value to each call of a server, for hotspot rules that name the parameter, as in
// Param("client", nethttp.ClientIP(proxies...)). Over HTTP the value sees the request, and a gRPC
// call as one: its headers are the metadata, RemoteAddr is the other end of the connection, and the
// path is the full method. "" means no value. A client's calls carry none.
func Param(name string, value nethttp.Value) Option {
	return func(to *guard) { to.Params = append(to.Params, rpc.Param{Name: name, Value: value}) }
}

// Criticality sets the level of each call of a server to the one that of names, at most atMost, as in
// Criticality(nethttp.TrustedHeader("Criticality", networks...), api.Critical). The value sees the call
// as that of [Param] does. "" means the default, and so does an unknown word; see
// api.Guard.WithReceivedCriticality. Without it none is read: callers gain by naming a high level.
// Clients send on the level that api.WithCriticality has given to their context.
func Criticality(of nethttp.Value, atMost api.Level) Option {
	return func(to *guard) { to.Level, to.AtMost = of, atMost }
}

// Cost estimates what each call takes of a unit, for rules with that unit; below 1 means nothing. The
// handler settles it: see api.Cost, and api.FromContext for the call of its context. A client's call
// keeps the estimate, unless [RefundOnError] gives it back.
func Cost(unit string, estimate func(ctx context.Context, t transport.Transporter, req any) int64) Option {
	return func(to *guard) { to.costs = append(to.costs, cost{unit, estimate}) }
}

// RefundOnError gives back what calls have reserved of a unit and not settled, if they fail. A call
// whose context has ended by then keeps it, since its caller may have left on purpose.
func RefundOnError(unit string) Option {
	return func(to *guard) { to.Refunds = append(to.Refunds, unit) }
}

// WithOptions adds per-call options, returned by f, to those set by the other options: units,
// priority, arguments, endpoint.
func WithOptions(f func(ctx context.Context, t transport.Transporter, req any) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// FailureCodes makes breakers count these codes as failures, and no others. By default a client's
// codes are those of a server and ResourceExhausted.
func FailureCodes(failures ...codes.Code) Option {
	set := rpc.Codes(failures...)
	return func(to *guard) { to.Failures, to.Failure = set, nil }
}

// Failure decides which errors breakers count as failures, instead of the rules in the package's
// documentation; f also gets the errors of canceled calls. It does not run for panics or refusals.
func Failure(f func(err error) bool) Option { return func(to *guard) { to.Failure = f } }

type cost struct {
	unit     string
	estimate func(ctx context.Context, t transport.Transporter, req any) int64
}
