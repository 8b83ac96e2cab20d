// Package penstockchi guards servers that route with chi:
//
//	r := chi.NewRouter()
//	r.Use(penstockchi.Middleware())
//
// Each route is a resource, "GET /users/{id}", wherever the middleware stands: above all routes, in
// a group, or in a mounted router. HEAD of a route that serves GET counts as GET. Package nethttp
// provides the options and defines calls, names, failures and refusals.
//
// The page docs/adapters/chi.md has examples.
package penstockchi

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// Middleware guards the routes below it. Put it after middlewares that recover from panics and
// before handlers that need a limit.
func Middleware(opts ...nethttp.Option) func(http.Handler) http.Handler {
	g := nethttp.NewGuard(opts...)
	return func(next http.Handler) http.Handler {
		next = restoring{next}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve(w, r, pattern(r, g.Looks()), next) })
	}
}

// restoring is a handler below a guard. chi extends the pattern of a request at each mounted
// router; restoring hides that from the guard, which would take a changed pattern for that of a
// router it doesn't know.
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

// pattern returns the pattern of the route that will serve the request, or "". It also works in
// top-level middleware, before chi has matched a route. If values is set, the request gets the path
// values.
func pattern(r *http.Request, values bool) string {
	routed := chi.RouteContext(r.Context())
	if routed == nil || routed.Routes == nil {
		return r.Pattern
	}
	path := ""
	if len(routed.RoutePatterns) == 0 { // as changed by middleware.StripSlashes and CleanPath
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
	if p == "" && r.Method == http.MethodHead { // middleware.GetHead serves it with GET
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
