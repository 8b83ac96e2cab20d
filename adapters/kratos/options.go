package penstockkratos

import (
	"context"

	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/grpc/codes"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
	"github.com/penstock-go/penstock/api"
)

// Option changes how calls are guarded. Of two that say different things the later one holds.
type Option func(*guard)

// On has calls go through a guard of one's own, and not through the default one.
func On(g *api.Guard) Option { return func(to *guard) { to.API = g } }

// Context has calls come in through the named context, see api.WithContext.
func Context(name string) Option { return func(to *guard) { to.Context = name } }

// Origin says who makes a call; "" is nobody in particular. Without it nobody does: that a
// header can be believed, somebody has to say.
func Origin(of func(context.Context, transport.Transporter) string) Option {
	return func(to *guard) { to.origin = of }
}

// Resource names the resource of a call that has a name by itself, as "/package.Service/Method". The name "" lets
// the call pass unguarded. It is asked about every call, also those of health checks and
// reflection. Names should be few: see the caps of api.Config for what happens to others.
func Resource(name func(name string) string) Option { return func(to *guard) { to.resource = name } }

// WithOptions has calls made with what f returns for them, besides what the other options
// say: units, priority, arguments, endpoint.
func WithOptions(f func(ctx context.Context, t transport.Transporter, req any) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// FailureCodes has breakers take these codes for failures, and no others. The codes of a client
// are those of a server and ResourceExhausted, if nobody says otherwise.
func FailureCodes(failures ...codes.Code) Option {
	set := rpc.Codes(failures...)
	return func(to *guard) { to.Failures, to.Failure = set, nil }
}

// Failure says which errors breakers take for failures, instead of the rules that the
// package's documentation has, a call that was canceled included. It is not asked about
// panics, nor about refusals.
func Failure(f func(err error) bool) Option { return func(to *guard) { to.Failure = f } }
