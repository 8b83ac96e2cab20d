package nethttp_test

import (
	"net/http"
	"testing"

	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func mux(routes []conformance.Route, around func(http.Handler) http.Handler) *http.ServeMux {
	m := http.NewServeMux()
	for _, r := range routes {
		m.Handle(r.Method+" "+r.Pattern, around(r.Handler))
	}
	return m
}

func TestHandler(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: func(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
		return nethttp.Handler(mux(routes, func(h http.Handler) http.Handler { return h }), opts...)
	}})
}

func TestMiddleware(t *testing.T) {
	const inside = "routes alone are guarded"
	conformance.Run(t, conformance.Server{
		Handler: func(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
			return mux(routes, nethttp.Middleware(opts...))
		},
		Without: map[string]string{"requests without a route can be refused": inside},
	})
}
