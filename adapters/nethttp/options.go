package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how requests are guarded. Of two that say different things the later
// one holds.
type Option func(*Guard)

// On makes calls go through a guard of one's own, not through the default one.
func On(g *api.Guard) Option { return func(to *Guard) { to.api = g } }

// Context makes requests come in through the named context, see api.WithContext.
func Context(name string) Option { return func(to *Guard) { to.context = name } }

// Origin says who makes a request; "" means no particular caller. Without it requests have no
// origin: whether a header can be trusted, only the program can say. See [TrustedHeader] and
// [VerifiedPeer].
func Origin(of Value) Option { return func(to *Guard) { to.origin = of } }

// Resource names the resource of a request whose route is known, such as "GET /users/{id}". The
// name "" lets the request pass unguarded. Names should be few: see the caps of api.Config for what
// happens to others.
func Resource(name func(r *http.Request, route string) string) Option {
	return func(to *Guard) { to.resource = name }
}

// SentinelNames names resources as Sentinel's adapters do: GET:/users/{id}.
func SentinelNames() Option { return func(to *Guard) { to.separator = ":" } }

// PerHost makes all requests of a client to one host calls of one resource, "api.example.com", whatever
// their methods are: so a breaker that opens because of some of them is open for all. For servers it has no meaning.
func PerHost() Option { return func(to *Guard) { to.perHost = true } }

// Param attaches a value of each request to its call, for hotspot rules that name the
// parameter, as in Param("user", Header("X-User")). "" is no value.
func Param(name string, value Value) Option {
	return func(to *Guard) { to.params = append(to.params, param{name, value}) }
}

// WithOptions makes calls with the options that f returns for their requests, in addition to what
// the other options say: units, priority, arguments.
func WithOptions(f func(*http.Request) []api.Option) Option {
	return func(to *Guard) { to.options = f }
}

// Failure says which outcomes breakers take for failures, instead of the rules that the
// package's documentation has. The status is the response's, 0 if there was none; err is what the
// handler returned, where the framework has handlers return errors, or what the transport did. It
// is not asked about panics, nor about nested refusals.
func Failure(f func(r *http.Request, status int, err error) bool) Option {
	return func(to *Guard) { to.failure = f }
}

// Refuse answers requests that were refused, instead of refusal.Write. The response has that one's headers
// already, Retry-After among them, but for those of its body. err is api.Entry's; package refusal can interpret it.
func Refuse(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(to *Guard) { to.refuse = f }
}

// RateLimitHeaders makes refusals state the limit in that form. By default they don't.
func RateLimitHeaders(form refusal.Headers) Option { return func(to *Guard) { to.headers = form } }

// HoldHijacked has a call last until its handler returns also where that takes over the
// connection; its response time does not count then. For handlers that serve a WebSocket
// before they return, so that a limit of concurrent calls holds for open connections.
func HoldHijacked() Option { return func(to *Guard) { to.holdHijacked = true } }

// GatewayClients says how [Gateway] finds the client of a request, for rules whose param is clientIP, as
// in GatewayClients(ClientNetwork(64, ClientIP(proxies...))). Without it that is [ClientIP]
// without proxies: the other end of the connection.
func GatewayClients(of Value) Option { return func(to *Guard) { to.clientIP = of } }

type param struct {
	name  string
	value Value
}
