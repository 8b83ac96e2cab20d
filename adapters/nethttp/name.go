package nethttp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/adapters/internal/response"
)

// Unmatched replaces the pattern for requests that no route serves.
const Unmatched = "__unmatched__"

// OtherMethod replaces methods that HTTP does not know.
const OtherMethod = response.OtherMethod

// name is the resource's name, where the method is one that HTTP knows. Of a pattern that has a method of its own, that is it.
func (g *Guard) name(at route) string {
	own, path, has := strings.Cut(at.pattern, " ")
	switch {
	case at.method == "": // of PerHost
		return at.pattern
	case has:
		return own + g.separator + strings.TrimLeft(path, " \t")
	case at.pattern == "":
		return at.method + g.separator + Unmatched
	}
	return at.method + g.separator + at.pattern
}

// rerouted notes that a router below the guard has found another pattern, and says so once in the log,
// since rules for it don't apply. A client chooses the pattern of a CONNECT that is redirected.
func (g *Guard) rerouted(x *Exchange) {
	inner := x.request.Pattern
	if g.resource != nil || inner == "" || x.request.Method == http.MethodConnect || g.told.Load() || !g.told.CompareAndSwap(false, true) {
		return
	}
	guard := g.guard()
	name := g.name(route{response.Method(x.request.Method), inner})
	if _, guarded := guard.FindResource(name); guarded {
		return
	}
	guard.Logger().Warn("penstock: a route passes its requests on to a router of its own, and rules for the routes of that apply to none of them: guard it as well, see docs/adapters/nethttp.md",
		"route", x.original.Pattern, "inner", name)
}

// setPathValues tells the request what the wildcards of its route's pattern matched, before a mux
// has routed it.
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
