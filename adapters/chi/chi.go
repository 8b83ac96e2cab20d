// Package penstockchi guards servers that route with chi:
//
//	r := chi.NewRouter()
//	r.Use(penstockchi.Middleware())
//
// Each route is a resource of its own, "GET /users/{id}", wherever the middleware is: above all
// routes, in a group, or in a router that is mounted. HEAD of a route that is there for GET counts
// as that. Package nethttp, whose options it takes, defines what calls, names, failures and
// refusals are.
package penstockchi

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// Middleware guards the routes below it. It is to come after those that recover from
// panics, and before those that need a limit.
func Middleware(opts ...nethttp.Option) func(http.Handler) http.Handler {
	g := nethttp.NewGuard(opts...)
	return func(next http.Handler) http.Handler {
		next = restoring{next}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve(w, r, pattern(r, g.Looks()), next) })
	}
}

// restoring is a handler below a guard. chi extends the pattern of a request at each router that is
// mounted; restoring hides that from the guard, which takes any other pattern for one of a router
// that it doesn't know.
type restoring struct{ next http.Handler }

func (h restoring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	before := r.Pattern
	h.next.ServeHTTP(w, r)
	if routed := chi.RouteContext(r.Context()); r.Pattern != before && routed != nil &&
		strings.HasPrefix(routed.RoutePattern(), strings.TrimRight(strings.TrimSuffix(r.Pattern, "*"), "/")) {
		r.Pattern = before
	}
}

var contexts = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// pattern is the pattern of the route that will serve the request, "" if none will: a middleware
// above all routes comes before the router has looked. The request knows the path values then, if
// they are wanted.
func pattern(r *http.Request, values bool) string {
	routed := chi.RouteContext(r.Context())
	if routed == nil || routed.Routes == nil {
		return r.Pattern
	}
	path := ""
	if len(routed.RoutePatterns) == 0 { // as middleware.StripSlashes and CleanPath have changed it
		path = routed.RoutePath
	}
	if path == "" {
		path = r.URL.RawPath
	}
	if path == "" {
		path = r.URL.Path
	}
	if path == "" {
		path = "/"
	}
	found := contexts.Get().(*chi.Context)
	defer contexts.Put(found)
	found.Reset()
	p := routed.Routes.Find(found, r.Method, path)
	if p == "" && r.Method == http.MethodHead { // middleware.GetHead lets GET serve it
		found.Reset()
		if p = routed.Routes.Find(found, http.MethodGet, path); p != "" {
			p = http.MethodGet + " " + p
		}
	}
	if p != "" && values {
		for i, name := range found.URLParams.Keys {
			r.SetPathValue(name, found.URLParams.Values[i])
		}
	}
	return p
}
