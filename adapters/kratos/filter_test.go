package penstockkratos_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{
		Handler: func(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
			srv := khttp.NewServer(khttp.Timeout(0), khttp.NotFoundHandler(http.NotFoundHandler()),
				khttp.MethodNotAllowedHandler(http.NotFoundHandler()))
			guarded := srv.Route("/", penstockkratos.Filter(opts...))
			for _, r := range routes {
				guarded.Handle(r.Method, r.Pattern, func(c khttp.Context) error {
					r.Handler(c.Response(), c.Request())
					return nil
				})
			}
			return srv
		},
		Pattern: func(pattern string) string { return strings.TrimSuffix(pattern, "/") }, // as kratos registers it
		Without: map[string]string{"requests without a route can be refused": "kratos asks filters of routes only"},
	})
}

// A filter's options see the path values of the route.
func TestPathValues(t *testing.T) {
	g := guard(t, api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "GET /users/{id}", Param: "id", Threshold: 1, Interval: time.Hour}}})
	srv := khttp.NewServer()
	srv.Route("/users", penstockkratos.Filter(nethttp.On(g), nethttp.Param("id", nethttp.PathValue("id")))).
		GET("/{id}", func(c khttp.Context) error { return c.String(http.StatusOK, "user") })
	for n, path := range []string{"/users/1", "/users/2", "/users/1"} {
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, []int{200, 200, 429}[n], w.Code)
	}
}

// No rule applies to the routes of a mux below a route.
func TestNested(t *testing.T) {
	conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
		srv := khttp.NewServer(khttp.NotFoundHandler(http.NotFoundHandler()))
		guarded := srv.Route("/", penstockkratos.Filter(opts...))
		for path, h := range map[string]http.Handler{"/plain/{id}": plain, "/api/{path:.*}": inner} {
			guarded.GET(path, func(c khttp.Context) error {
				h.ServeHTTP(c.Response(), c.Request())
				return nil
			})
		}
		return srv
	})
}
