package penstockchi_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"testing"

	"github.com/go-chi/chi/v5"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func start(t testing.TB, routes []conformance.Route, opts ...nethttp.Option) string {
	r := chi.NewRouter()
	r.Use(penstockchi.Middleware(opts...))
	for _, route := range routes {
		r.Method(route.Method, route.Pattern, route.Handler)
	}
	return serve(t, r)
}

// serve serves on the loopback interface until the test ends.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Start: start})
}
