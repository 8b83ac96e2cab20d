package nethttp

import (
	"net/http"
	"path"
	"strings"
)

// Mux routes requests; *http.ServeMux implements it.
type Mux interface {
	http.Handler
	// Handler returns the pattern of the route that serves the request, "" if none does.
	Handler(r *http.Request) (h http.Handler, pattern string)
}

// Handler guards everything that mux serves, with each route as a resource.
func Handler(mux Mux, opts ...Option) http.Handler {
	g := NewGuard(opts...)
	_, standard := mux.(*http.ServeMux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next, pattern := mux.Handler(r)
		redirected := false
		if standard && r.Method == http.MethodConnect {
			pattern, redirected = registered(mux, r, pattern)
		}
		if !redirected && (!standard || r.Pattern != "" || r.RequestURI == "*" || hasWildcard(pattern)) {
			next = mux
		} // the mux would only look up that handler again
		r.Pattern = pattern // for handlers around the guard: the mux routes a copy of the request
		if g.looks {
			setPathValues(r, pattern)
		}
		g.Serve(w, r, pattern, next)
	})
}

// registered returns the pattern of the route that a CONNECT is redirected to. For such a request
// an http.ServeMux returns the target path, which the client has chosen, as the pattern.
func registered(mux Mux, r *http.Request, pattern string) (of string, redirected bool) {
	escaped := r.URL.EscapedPath()
	if escaped == "" || strings.HasSuffix(escaped, "/") || pattern != cleaned(r.URL.Path)+"/" {
		return pattern, false
	}
	there, at := *r, *r.URL
	at.Path, at.RawPath = at.Path+"/", escaped+"/"
	there.URL = &at
	_, of = mux.Handler(&there)
	return of, true
}

// cleaned returns a path as an http.ServeMux redirects to it.
func cleaned(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return clean
}

// hasWildcard reports whether the mux passes parts of the path to the handlers of a pattern.
func hasWildcard(pattern string) bool {
	return strings.Contains(strings.TrimSuffix(pattern, "{$}"), "{")
}

// Middleware guards single handlers. A handler that a mux routes to has its pattern as the
// resource; for others, [Resource] names it:
//
//	mux.Handle("GET /orders", nethttp.Middleware()(orders))
func Middleware(opts ...Option) func(http.Handler) http.Handler {
	g := NewGuard(opts...)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve(w, r, r.Pattern, next) })
	}
}

// Serve serves a request with next, as a call of the route with that pattern, or refuses it. It is
// for routers with net/http handlers.
func (g *Guard) Serve(w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
	x, err := g.Begin(w, r, r.Method, pattern)
	if err != nil {
		g.Refuse(w, r, err)
		return
	}
	defer x.Close()
	next.ServeHTTP(x.writer, x.request)
	x.End(int(x.status), nil)
}
