package penstockchi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// The resource is the whole route wherever the middleware stands, and path values are known.
func TestPlaces(t *testing.T) {
	for name, build := range map[string]func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler{
		"above all": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
			r, users := chi.NewRouter(), chi.NewRouter()
			r.Use(use)
			users.Get("/{id}", h)
			r.Mount("/users", users)
			return r
		},
		"in a group": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
			r := chi.NewRouter()
			r.Group(func(r chi.Router) {
				r.Use(use)
				r.Get("/users/{id}", h)
			})
			return r
		},
		"with": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
			r := chi.NewRouter()
			r.With(use).Get("/users/{id}", h)
			return r
		},
		"mounted": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
			r, users := chi.NewRouter(), chi.NewRouter()
			users.Use(use)
			users.Get("/{id}", h)
			r.Mount("/users", users)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := api.New(api.Config{})
			require.NoError(t, err)
			defer g.Close()
			seen := ""
			h := build(penstockchi.Middleware(nethttp.On(g), nethttp.WithOptions(func(r *http.Request) []api.Option {
				seen = r.PathValue("id")
				return nil
			})), func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(chi.URLParam(r, "id"))) })
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/users/7", nil))
			assert.Equal(t, "7", w.Body.String())
			assert.Equal(t, "7", seen)
			n, ok := g.Tree().Resource("GET /users/{id}")
			require.True(t, ok, g.Tree().Resources)
			assert.EqualValues(t, 1, n.Lifetime.Pass)
		})
	}
}

// Where chi serves HEAD with GET, a rule for GET applies to both.
func TestHeadIsServedByGet(t *testing.T) {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	guard := penstockchi.Middleware(nethttp.On(g))
	for _, use := range [][]func(http.Handler) http.Handler{{guard, middleware.GetHead}, {middleware.GetHead, guard}} {
		r := chi.NewRouter()
		r.Use(use...)
		r.Get("/users/{id}", func(http.ResponseWriter, *http.Request) {})
		r.Head("/own", func(http.ResponseWriter, *http.Request) {})
		for _, path := range []string{"/users/7", "/own"} {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
			assert.Equal(t, http.StatusOK, w.Code)
		}
	}
	for _, name := range []string{"GET /users/{id}", "HEAD /own"} {
		n, ok := g.Tree().Resource(name)
		require.True(t, ok, name)
		assert.EqualValues(t, 2, n.Lifetime.Pass, name)
	}
}

// No rule applies to the routes of a mounted net/http mux; routes of chi's own routers are known,
// even if a middleware between them copies the request.
func TestNested(t *testing.T) {
	copies := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), t, 1)))
		})
	}
	for _, use := range [][]func(http.Handler) http.Handler{nil, {copies}} {
		conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
			r, mounted := chi.NewRouter(), chi.NewRouter()
			r.Use(penstockchi.Middleware(opts...))
			mounted.Use(use...)
			mounted.Method(http.MethodGet, "/{id}", plain)
			r.Mount("/plain", mounted)
			r.Mount("/api", inner)
			return r
		})
	}
}

// Middlewares above the guard may change the path that chi uses for routing.
func TestChangedPaths(t *testing.T) {
	for name, change := range map[string]func(http.Handler) http.Handler{"StripSlashes": middleware.StripSlashes, "CleanPath": middleware.CleanPath} {
		g, err := api.New(api.Config{})
		require.NoError(t, err)
		defer g.Close()
		r := chi.NewRouter()
		r.Use(change, penstockchi.Middleware(nethttp.On(g)))
		r.Get("/users/{id}", func(http.ResponseWriter, *http.Request) {})
		r.Route("/api", func(r chi.Router) {
			r.Get("/users/{id}", func(http.ResponseWriter, *http.Request) {})
		})
		for _, path := range map[string][]string{"StripSlashes": {"/users/7/", "/api/users/7/"}, "CleanPath": {"/users//7", "//api/users/7"}}[name] {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://a.test"+path, nil))
			assert.Equal(t, 200, w.Code, path)
		}
		var names []string
		for _, n := range g.Tree().Resources {
			names = append(names, n.Name)
		}
		assert.ElementsMatch(t, []string{"GET /users/{id}", "GET /api/users/{id}"}, names, name)
	}
}
