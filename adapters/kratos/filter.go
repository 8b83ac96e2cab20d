package penstockkratos

import (
	"net/http"

	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/gorilla/mux"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// Filter guards HTTP routes whose handlers write the response themselves, such as downloads, events
// and WebSockets, as package nethttp does, whose options it takes:
//
//	files := server.Route("/files", penstockkratos.Filter())
//
// It sees the status, and a stream until its end. Use it as a filter of a route or a group, not of
// a server, where no route is known yet; with [Server], use it only for handlers that don't call
// the server's middleware.
func Filter(opts ...nethttp.Option) khttp.FilterFunc {
	g := nethttp.NewGuard(opts...)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pattern := ""
			if t, ok := transport.FromServerContext(r.Context()); ok {
				if h, ok := t.(khttp.Transporter); ok {
					pattern = template(h)
				}
			}
			if g.Looks() {
				for name, value := range mux.Vars(r) {
					r.SetPathValue(name, value)
				}
			}
			g.Serve(w, r, pattern, next)
		})
	}
}
