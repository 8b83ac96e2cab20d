package penstockchi_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func handler(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
	r := chi.NewRouter()
	r.Use(penstockchi.Middleware(opts...))
	for _, route := range routes {
		r.Method(route.Method, route.Pattern, route.Handler)
	}
	return r
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: handler})
}
