package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how requests are guarded. If two options conflict, the later one wins.
type Option func(*Guard)

// On uses g instead of the default guard.
func On(g *api.Guard) Option { return func(to *Guard) { to.api = g } }

// Context enters requests through the named context; see api.WithContext.
func Context(name string) Option { return func(to *Guard) { to.context = name } }

// Origin sets the caller of each request; "" means no particular caller. Without it requests have
// no origin: only the program knows whether a header can be trusted. See [TrustedHeader] and
// [VerifiedPeer].
func Origin(of Value) Option { return func(to *Guard) { to.origin = of } }

// Resource names the resource of a request whose route is known, such as "GET /users/{id}". The
// name "" lets the request pass unguarded. Use few names: the caps in api.Config limit them.
func Resource(name func(r *http.Request, route string) string) Option {
	return func(to *Guard) { to.resource = name }
}

// SentinelNames names resources as Sentinel's adapters do: GET:/users/{id}.
func SentinelNames() Option { return func(to *Guard) { to.separator = ":" } }

// PerHost makes all requests of a client to one host calls of one resource, "api.example.com",
// whatever their methods: a breaker that opens is then open for all of them. It has no effect on
// servers.
func PerHost() Option { return func(to *Guard) { to.perHost = true } }

// Criticality sets the level of each request of a server to the one that of names, at most atMost, as
// in Criticality(TrustedHeader(CriticalityHeader, proxies...), api.Critical). "" means the default,
// and so does an unknown word; see api.Guard.WithReceivedCriticality. Without it no header is read:
// callers gain by naming a high level. Clients send on the level that api.WithCriticality has given
// to the context of a request; this option has no effect on them.
func Criticality(of Value, atMost api.Level) Option {
	return func(to *Guard) { to.criticality, to.atMost = of, atMost }
}

// CriticalityHeader is the header that names the level of a request, as in "Criticality: sheddable".
const CriticalityHeader = "Criticality"

// Param attaches a value of each request to its call, for hotspot rules that name the parameter, as
// in Param("user", Header("X-User")). "" means no value.
func Param(name string, value Value) Option {
	return func(to *Guard) { to.params = append(to.params, param{name, value}) }
}

// Plan names the plan of each request's user or tenant, for hotspot rules with plans, as in
// Plan(TrustedHeader("X-Plan", proxies...)); see api.Plan. "" means none. Callers gain by naming
// another plan, so it must not come from them.
func Plan(of Value) Option { return func(to *Guard) { to.plan = of } }

// Cost estimates what each request takes of a unit, for rules with that unit; below 1 means nothing.
// The handler settles it: see api.Cost, and api.FromContext for the call of r.Context().
func Cost(unit string, estimate func(*http.Request) int64) Option {
	return func(to *Guard) { to.costs = append(to.costs, cost{unit, estimate}) }
}

// RefundOnError gives back what requests have reserved of a unit and not settled, if they fail before
// their response begins: with a status of 400 or above, an error or a panic. A request whose context
// has ended by then keeps it, since its client may have left on purpose.
func RefundOnError(unit string) Option {
	return func(to *Guard) { to.refunds = append(to.refunds, unit) }
}

// WithOptions adds per-request options, returned by f, to those set by the other options: units,
// priority, arguments.
func WithOptions(f func(*http.Request) []api.Option) Option {
	return func(to *Guard) { to.options = f }
}

// Failure decides which outcomes breakers count as failures, instead of the rules in the package's
// documentation. The status is the response's, or 0 if there was none; err is the error that the
// transport or, in frameworks whose handlers return errors, the handler returned. f does not run
// for panics or nested refusals.
func Failure(f func(r *http.Request, status int, err error) bool) Option {
	return func(to *Guard) { to.failure = f }
}

// Refuse responds to refused requests instead of refusal.Write. The response already has the
// headers of refusal.Write, with Retry-After, except those of its body. err is api.Entry's; package
// refusal can interpret it.
func Refuse(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(to *Guard) { to.refuse = f }
}

// RateLimitHeaders makes responses state the limit in that form, and what it has left: refusals, and
// responses to requests that a flow or hotspot rule counts. By default they don't. A handler may
// change the headers.
func RateLimitHeaders(form refusal.Headers) Option { return func(to *Guard) { to.headers = form } }

// HoldHijacked makes a call last until its handler returns even if the handler takes over the
// connection; its response time does not count then. Use it for handlers that serve a WebSocket
// before they return, so that a concurrency limit counts open connections.
func HoldHijacked() Option { return func(to *Guard) { to.holdHijacked = true } }

// GatewayClients sets how [Gateway] finds the client of a request, for rules whose param is
// clientIP, as in GatewayClients(ClientNetwork(64, ClientIP(proxies...))). The default is
// [ClientIP] without proxies: the other end of the connection.
func GatewayClients(of Value) Option { return func(to *Guard) { to.clientIP = of } }

type param struct {
	name  string
	value Value
}

type cost struct {
	unit     string
	estimate func(*http.Request) int64
}
