package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules/gateway"
)

// Gateway guards a handler that passes requests on, such as an httputil.ReverseProxy: each request
// is a call of every group that its path belongs to, in the order of the rule file, and within
// those of its route. Groups come from the rules in force; values that rules need, such as the
// client's address or a header, go with the calls. See package gateway. A request uses the groups
// of one revision of the rules.
//
// route names the resource of a request's route; "" means that the request has only its groups, as
// all requests do if route is nil. Use few names: the caps in api.Config limit them.
//
// A request is refused if one of its calls is. Units that it took from earlier groups stay taken,
// since those groups admitted it.
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

// guard returns the guard that calls go through.
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

// valueOf maps a gateway value to its source in the request.
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
