package nethttp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/adapters/internal/response"
)

// Unmatched replaces the pattern for requests that no route serves.
const Unmatched = "__unmatched__"

// OtherMethod replaces methods unknown to HTTP.
const OtherMethod = response.OtherMethod

// name returns the resource's name. The method must be one that HTTP knows; a pattern's own method
// takes precedence.
func (g *Guard) name(at route) string {
	own, path, has := strings.Cut(at.pattern, " ")
	switch {
	case at.method == "": // for PerHost
		return at.pattern
	case has:
		return own + g.separator + strings.TrimLeft(path, " \t")
	case at.pattern == "":
		return at.method + g.separator + Unmatched
	}
	return at.method + g.separator + at.pattern
}

// rerouted records that a router below the guard has found another pattern, and logs once that
// rules for it don't apply. For a redirected CONNECT, the client chose the pattern.
func (g *Guard) rerouted(x *Exchange) {
	inner := x.request.Pattern
	if g.resource != nil || inner == "" || x.request.Method == http.MethodConnect || g.warned.Load() || !g.warned.CompareAndSwap(false, true) {
		return
	}
	guard := g.guard()
	name := g.name(route{response.Method(x.request.Method), inner})
	if _, guarded := guard.FindResource(name); guarded {
		return
	}
	guard.Logger().Warn("penstock: a route passes its requests to a router of its own, so rules for the inner routes don't apply: guard that router as well, see docs/adapters/nethttp.md",
		"route", x.original.Pattern, "inner", name)
}

// setPathValues sets the path values of the request's pattern before a mux has routed it.
func setPathValues(r *http.Request, pattern string) {
	_, pattern, found := strings.Cut(pattern, "/")
	if !found {
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	for pattern != "" {
		var wildcard, segment string
		wildcard, pattern, _ = strings.Cut(pattern, "/")
		if name, ok := strings.CutSuffix(wildcard, "...}"); ok {
			r.SetPathValue(name[1:], unescape(path))
			return
		}
		segment, path, _ = strings.Cut(path, "/")
		if len(wildcard) > 2 && wildcard[0] == '{' && wildcard != "{$}" {
			r.SetPathValue(wildcard[1:len(wildcard)-1], unescape(segment))
		}
	}
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
