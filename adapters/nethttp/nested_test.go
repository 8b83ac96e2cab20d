package nethttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// A guard around a mux doesn't see the routes of a mux below one of its routes, and logs that once.
func TestNestedMuxes(t *testing.T) {
	routes := func(outer *http.ServeMux, inner http.Handler) http.Handler {
		outer.Handle("GET /api/", inner)
		outer.HandleFunc("GET /plain/{id}", ok)
		return outer
	}
	inner := func() *http.ServeMux {
		m := http.NewServeMux()
		m.HandleFunc("GET /api/users/{id}", ok)
		m.HandleFunc("GET /api/orders", ok)
		return m
	}
	for name, c := range map[string]struct {
		build func(opts ...nethttp.Option) http.Handler
		lines int
	}{
		"outside": {func(opts ...nethttp.Option) http.Handler {
			outer := http.NewServeMux()
			routes(outer, inner())
			return nethttp.Handler(outer, opts...)
		}, 1},
		"at the route": {func(opts ...nethttp.Option) http.Handler {
			return routes(http.NewServeMux(), nethttp.Middleware(opts...)(inner()))
		}, 1},
		"around, without asking the mux": {func(opts ...nethttp.Option) http.Handler {
			return nethttp.Middleware(opts...)(routes(http.NewServeMux(), inner()))
		}, 1},
		"inside": {func(opts ...nethttp.Option) http.Handler {
			return routes(http.NewServeMux(), nethttp.Handler(inner(), opts...))
		}, 0},
		"both": {func(opts ...nethttp.Option) http.Handler {
			outer := http.NewServeMux()
			routes(outer, nethttp.Handler(inner(), opts...))
			return nethttp.Handler(outer, opts...)
		}, 0},
		"names of one's own": {func(opts ...nethttp.Option) http.Handler {
			outer := http.NewServeMux()
			routes(outer, inner())
			return nethttp.Handler(outer, append(opts, nethttp.Resource(func(*http.Request, string) string { return "all" }))...)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			g, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			defer g.Close()
			h := c.build(nethttp.On(g))
			for _, target := range []string{"/plain/1", "/none", "/api/none", "/api/users/7", "/api/users/8", "/api/orders"} {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodConnect, "/api/x7", nil))
			assert.Equal(t, c.lines, strings.Count(log.String(), "router of its own"), log.String())
			if c.lines > 0 && name != "around, without asking the mux" {
				assert.Contains(t, log.String(), `inner="GET /api/users/{id}"`)
			}
		})
	}
}

// When a mux redirects a CONNECT, the pattern is a path chosen by the client, not a route.
func TestNestedMuxesThatRedirect(t *testing.T) {
	var log bytes.Buffer
	g, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer g.Close()
	inner, outer := http.NewServeMux(), http.NewServeMux()
	inner.HandleFunc("/api/{file}/", ok)
	outer.Handle("/api/", inner)
	h := nethttp.Handler(outer, nethttp.On(g))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodConnect, "/api/x7", nil))
	assert.Empty(t, log.String())
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/x7/", nil))
	assert.Contains(t, log.String(), `inner="GET /api/{file}/"`, "which is still said")
}

// A CORS middleware around the guard responds to preflights before rules are checked, and adds its
// headers to refusals.
func TestCORSAroundTheGuard(t *testing.T) {
	g := newGuard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "GET /x", Threshold: 1, Interval: time.Hour}}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x", ok)
	guarded := nethttp.Handler(mux, nethttp.On(g))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://shop.test")
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		guarded.ServeHTTP(w, r)
	})
	for _, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodOptions, "/x", nil))
		assert.Equal(t, 204, w.Code)
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
		assert.Equal(t, want, w.Code)
		assert.Equal(t, "https://shop.test", w.Header().Get("Access-Control-Allow-Origin"))
	}
	n := g.Tree().Resources
	require.Len(t, n, 1)
	assert.Equal(t, "GET /x", n[0].Name)
}
