package nethttp

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Guard guards requests with the given options. Programs use [Handler], [Middleware] or
// [Transport]; a Guard is for adapters of frameworks built on net/http.
//
//	x, err := guard.Begin(w, r, r.Method, pattern)
//	if err != nil {
//		guard.Refuse(w, r, err)
//		return
//	}
//	defer x.Close()
//	status, err := next(x.Writer(), x.Request())
//	x.End(status, err)
type Guard struct {
	api          *api.Guard // nil means the default guard
	context      string
	origin       Value
	criticality  Value     // nil for none
	atMost       api.Level // of criticality
	resource     func(r *http.Request, route string) string
	separator    string
	plan         Value // nil for none
	params       []param
	costs        []cost
	refunds      []string // units; see RefundOnError
	options      func(*http.Request) []api.Option
	failure      func(r *http.Request, status int, err error) bool
	refuse       func(w http.ResponseWriter, r *http.Request, err error)
	headers      refusal.Headers
	holdHijacked bool
	perHost      bool  // a client's resources have no method
	clientIP     Value // for the rules of gateways; nil is ClientIP()
	looks        bool  // some option looks at requests, perhaps at path values

	warned atomic.Bool                           // logged that a router below has found another pattern
	routes atomic.Pointer[map[route]*api.Handle] // replaced as a whole
}

// route is a method and a pattern as the router has them.
type route struct{ method, pattern string }

// NewGuard returns a Guard.
func NewGuard(opts ...Option) *Guard {
	g := &Guard{separator: " "}
	for _, o := range opts {
		o(g)
	}
	g.looks = g.origin != nil || g.criticality != nil || g.plan != nil || g.resource != nil || g.options != nil || len(g.params)+len(g.costs) > 0 || g.failure != nil || g.refuse != nil
	g.routes.Store(new(map[route]*api.Handle))
	return g
}

// Refuse responds to a request that was refused with err.
func (g *Guard) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if g.refuse == nil {
		refusal.WriteWith(w, r, err, g.headers)
		return
	}
	refusal.Tell(r.Context(), err)
	refusal.Of(err).SetHeaders(w.Header().Set, g.headers)
	g.refuse(w, r, err)
}

// Looks reports whether an option looks at requests, and so perhaps at path values: set them before
// [Guard.Begin] then. If none does, Begin needs only the method and the context of the request.
func (g *Guard) Looks() bool { return g.looks }

// Begin enters the resource of a request's route. The pattern is the router's; it may begin with
// a method, and is "" if no route serves the request. On success, run the request with
// [Exchange.Writer] and [Exchange.Request], and close the Exchange. Otherwise err is [api.Entry]'s,
// for [Guard.Refuse]. Begin waits as long as rules require, at most until the request's context
// ends.
func (g *Guard) Begin(w http.ResponseWriter, r *http.Request, method, pattern string) (*Exchange, error) {
	e, guarded, err := g.entry(r, method, pattern, true)
	if err != nil {
		return nil, err
	}
	return g.exchange(w, r, e, guarded), nil
}

// exchange wraps a request that was admitted.
func (g *Guard) exchange(w http.ResponseWriter, r *http.Request, e api.Admitted, guarded bool) *Exchange {
	x := newExchange(w)
	x.guard, x.entry, x.original, x.request = g, e, r, r
	if guarded {
		if g.headers != refusal.NoHeaders {
			g.tell(w, e)
		}
		e.ContextIn(&x.scope.Nested)
		x.request = r.WithContext(&x.scope)
	}
	return x
}

// tell sets the headers that state what the request's rules have left.
func (g *Guard) tell(w http.ResponseWriter, e api.Admitted) {
	if r, known := e.Remaining(""); known {
		refusal.SetRemaining(w.Header(), g.headers, r)
	}
}

// entry enters the resource; ok is false if the request passes unguarded.
func (g *Guard) entry(r *http.Request, method, pattern string, inbound bool) (e api.Admitted, ok bool, err error) {
	at := route{response.Method(method), pattern}
	if g.perHost && !inbound {
		at.method = ""
	}
	var room [4]api.Option
	ctx, opts := g.call(r, inbound, room[:0])
	if g.resource == nil {
		e, err = g.handle(at).Entry(ctx, opts...)
		return e, true, err
	}
	name := g.resource(r, g.name(at))
	if name == "" {
		return e, false, nil
	}
	if g.api != nil {
		e, err = g.api.Entry(ctx, name, opts...)
	} else {
		e, err = api.Entry(ctx, name, opts...)
	}
	return e, true, err
}

// ofServer marks the calls of servers, which wait only as long as the server's WriteTimeout leaves
// time for a response.
var ofServer = api.InboundWithin(response.TimeToWrite)

// call appends a call's options to opts: its direction and its arguments.
func (g *Guard) call(r *http.Request, inbound bool, opts []api.Option) (context.Context, []api.Option) {
	ctx := r.Context()
	if g.context != "" {
		ctx = api.WithContext(ctx, g.context)
	}
	if g.origin != nil {
		if origin := g.origin(r); origin != "" {
			ctx = api.WithOrigin(ctx, origin)
		}
	}
	if inbound {
		opts = append(opts, ofServer)
		if g.criticality != nil {
			ctx = g.guard().WithReceivedCriticality(ctx, g.criticality(r), g.atMost)
		}
	}
	if g.plan != nil {
		opts = append(opts, api.Plan(g.plan(r)))
	}
	for _, p := range g.params {
		if value := p.value(r); value != "" {
			opts = append(opts, api.Param(p.name, value))
		}
	}
	for _, c := range g.costs {
		if n := c.estimate(r); n > 0 {
			opts = append(opts, api.Cost(c.unit, n))
		}
	}
	if g.options != nil {
		opts = append(opts, g.options(r)...)
	}
	return ctx, opts
}

// refund settles 0 for the units of a failed call, unless the request's context has ended.
func (g *Guard) refund(e api.Admitted, r *http.Request) {
	if len(g.refunds) == 0 || r.Context().Err() != nil {
		return
	}
	for _, unit := range g.refunds {
		e.Settle(unit, 0)
	}
}

// maxRoutes caps the cached handles: most routers have fewer routes, and clients may ask for any
// number of hosts.
const maxRoutes = 1_000

// handle returns the cached handle for the route's resource, so that each name is built once.
func (g *Guard) handle(at route) *api.Handle {
	for {
		routes := g.routes.Load()
		if h := (*routes)[at]; h != nil {
			return h
		}
		var h *api.Handle
		if name := g.name(at); g.api != nil {
			h = g.api.Resource(name)
		} else {
			h = api.Resource(name)
		}
		if len(*routes) >= maxRoutes {
			return h
		}
		more := make(map[route]*api.Handle, len(*routes)+1)
		maps.Copy(more, *routes)
		more[route{at.method, strings.Clone(at.pattern)}] = h // the host is part of its URL's memory
		if g.routes.CompareAndSwap(routes, &more) {
			return h
		}
	}
}
