package penstockgrpc

import (
	"context"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

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
// origin: only the program knows whether metadata can be trusted. See [VerifiedPeer].
func Origin(of func(ctx context.Context, fullMethod string) string) Option {
	return func(to *guard) { to.origin = of }
}

// Resource names the resource of a call, given its full method "/package.Service/Method". The name
// "" lets the call pass unguarded. f runs for every call, including calls that are unguarded by
// default (see [Unguarded]) or unknown to the server. Use few names: the caps in api.Config limit
// them.
func Resource(name func(fullMethod string) string) Option {
	return func(to *guard) { to.resource = name }
}

// Param attaches a value to each call of a server, for hotspot rules that name the parameter, as in
// Param("client", nethttp.ClientIP(proxies...)). The value sees the call as a request: its headers
// are the metadata, RemoteAddr is the other end of the connection, and the path is the full method.
// "" means no value. A client's calls carry none.
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

// Cost estimates what each call takes of a unit, for rules with that unit; below 1 means nothing. For
// a stream, req is nil. The handler settles it: see api.Cost, and api.FromContext for the call of its
// context. A client's call keeps the estimate, unless [RefundOnError] gives it back.
func Cost(unit string, estimate func(ctx context.Context, req any, fullMethod string) int64) Option {
	return func(to *guard) { to.costs = append(to.costs, cost{unit, estimate}) }
}

// RefundOnError gives back what calls have reserved of a unit and not settled, if they fail before
// their first response. A call whose context has ended by then keeps it, since its caller may have
// left on purpose.
func RefundOnError(unit string) Option {
	return func(to *guard) { to.Refunds = append(to.Refunds, unit) }
}

// WithOptions adds per-call options, returned by f, to those set by the other options: units,
// priority, arguments, endpoint. For a stream, req is nil.
func WithOptions(f func(ctx context.Context, req any, fullMethod string) []api.Option) Option {
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
	estimate func(ctx context.Context, req any, fullMethod string) int64
}

// Unknown is the resource of all calls that only a server's grpc.UnknownServiceHandler serves.
const Unknown = rpc.Unknown

// Unguarded reports whether a method passes unguarded unless [Resource] says otherwise: Check, List
// and Watch of grpc.health.v1.Health, and ServerReflectionInfo of
// grpc.reflection.v1.ServerReflection and of v1alpha.
func Unguarded(fullMethod string) bool { return rpc.Unguarded(fullMethod) }

// VerifiedPeer returns the name of a TLS client from a certificate that the server has verified:
// its SPIFFE ID, else its first DNS name, else its common name. It is for [Origin].
func VerifiedPeer(ctx context.Context, _ string) string {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return ""
	}
	return verified(&http.Request{TLS: &info.State})
}

var verified = nethttp.VerifiedPeer()
