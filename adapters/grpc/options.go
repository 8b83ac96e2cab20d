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

// Option changes how calls are guarded. Of two that say different things the later one holds.
type Option func(*guard)

// On makes calls go through a guard of one's own, not through the default one.
func On(g *api.Guard) Option { return func(to *guard) { to.API = g } }

// Context makes calls come in through the named context, see api.WithContext.
func Context(name string) Option { return func(to *guard) { to.Context = name } }

// Origin says who makes a call; "" means no particular caller. Without it calls have no origin:
// whether metadata can be trusted, only the program can say. See [VerifiedPeer].
func Origin(of func(ctx context.Context, fullMethod string) string) Option {
	return func(to *guard) { to.origin = of }
}

// Resource names the resource of a call, as "/package.Service/Method" says what it is. The name ""
// lets the call pass unguarded. It is asked about every call, also those that are
// unguarded otherwise, see [Unguarded], or unknown to the server. Names should be few:
// see the caps of api.Config for what happens to others.
func Resource(name func(fullMethod string) string) Option {
	return func(to *guard) { to.resource = name }
}

// Param attaches a value of each call of a server to it, for hotspot rules that name the parameter, as in
// Param("client", nethttp.ClientIP(proxies...)). The value sees the call as a request: its headers are the
// metadata, RemoteAddr is the other end of the connection, and the path is the full method. "" is no
// value. A client's calls carry none.
func Param(name string, value nethttp.Value) Option {
	return func(to *guard) { to.Params = append(to.Params, rpc.Param{Name: name, Value: value}) }
}

// WithOptions makes calls with the options that f returns for them, in addition to what the other
// options say: units, priority, arguments, endpoint. Of a stream req is nil.
func WithOptions(f func(ctx context.Context, req any, fullMethod string) []api.Option) Option {
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

// Unknown is the resource of all calls of a server that only its grpc.UnknownServiceHandler
// serves.
const Unknown = rpc.Unknown

// Unguarded reports whether a method is let pass unguarded if [Resource] doesn't say otherwise:
// Check, List and Watch of grpc.health.v1.Health, and ServerReflectionInfo of
// grpc.reflection.v1.ServerReflection and of its v1alpha.
func Unguarded(fullMethod string) bool { return rpc.Unguarded(fullMethod) }

// VerifiedPeer is who the client of a TLS connection is by a certificate that the server has
// verified: its SPIFFE ID, else its first DNS name, else its common name. It is for [Origin].
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
