package nethttp_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// serve serves on the loopback interface until the test ends, and keeps the server's log of
// panics to itself.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func mux(routes []conformance.Route, around func(http.Handler) http.Handler) *http.ServeMux {
	m := http.NewServeMux()
	for _, r := range routes {
		m.Handle(r.Method+" "+r.Pattern, around(r.Handler))
	}
	return m
}

func TestHandler(t *testing.T) {
	conformance.Run(t, conformance.Server{Start: func(t testing.TB, routes []conformance.Route, opts ...nethttp.Option) string {
		return serve(t, nethttp.Handler(mux(routes, func(h http.Handler) http.Handler { return h }), opts...))
	}})
}

func TestMiddleware(t *testing.T) {
	const inside = "routes alone are guarded"
	conformance.Run(t, conformance.Server{
		Start: func(t testing.TB, routes []conformance.Route, opts ...nethttp.Option) string {
			return serve(t, mux(routes, nethttp.Middleware(opts...)))
		},
		Lacks: map[string]string{"requests without a route can be refused": inside},
	})
}
