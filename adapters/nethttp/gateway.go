package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules/gateway"
)

// Gateway guards a handler that passes requests on, such as an httputil.ReverseProxy: each
// request is a call of every group that its path belongs to, in the order of the rule file, and within
// those of its route. Groups are those of the rules in force, and what rules want to
// know of the request, the address of its client or a header, goes with the calls; see package
// gateway. A request goes by the groups of one revision of the rules.
//
// route names the resource of a request's route; where it returns "" the request has none and
// goes by its groups alone, as do all if route is nil. Names should be few: see the caps of
// api.Config for what happens to others.
//
// A request that one of its calls refuses is refused. What it took of the groups before stays
// taken: they let it in.
func Gateway(next http.Handler, route func(*http.Request) string, opts ...Option) http.Handler {
	g := NewGuard(opts...)
	if g.clientIP == nil {
		g.clientIP = ClientIP()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		table := gateway.Of(g.guard().Engine())
		targets := table.GroupsOf(r.URL)
		if route != nil {
			if name := route(r); name != "" {
				targets = append(targets, name)
			}
		}
		g.pass(w, r, table, targets, next)
	})
}

// guard is the one that calls go through.
func (g *Guard) guard() *api.Guard {
	if g.api != nil {
		return g.api
	}
	return api.Default()
}

// pass serves a request as calls of the targets, each within the one before.
func (g *Guard) pass(w http.ResponseWriter, r *http.Request, table *gateway.Table, targets []string, next http.Handler) {
	if len(targets) == 0 {
		next.ServeHTTP(w, r)
		return
	}
	var room [8]api.Option
	ctx, opts := g.call(r, true, room[:0])
	for _, v := range table.Values(targets[0]) {
		if value := g.valueOf(v)(r); v.Takes(value) {
			opts = append(opts, api.Param(v.Attachment, value))
		}
	}
	e, err := g.guard().Entry(ctx, targets[0], opts...)
	if err != nil {
		g.Refuse(w, r, err)
		return
	}
	x := g.exchange(w, r, e, true)
	defer x.Close()
	g.pass(x.writer, x.request, table, targets[1:], next)
	x.End(int(x.status), nil)
}

// valueOf is where a value of a request comes from.
func (g *Guard) valueOf(v gateway.Value) Value {
	switch v.Param {
	case gateway.ClientIP:
		return g.clientIP
	case gateway.Host:
		return Host()
	case gateway.Header:
		return Header(v.Name)
	case gateway.Query:
		return Query(v.Name)
	case gateway.Cookie:
		return Cookie(v.Name)
	}
	return func(*http.Request) string { return "" }
}
