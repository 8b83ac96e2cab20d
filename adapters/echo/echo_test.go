package penstockecho_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

func handler(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
	e := echo.New()
	e.Use(middleware.Recover(), penstockecho.Middleware(opts...))
	for _, route := range routes {
		e.Add(route.Method, conformance.Colons(route.Pattern), echo.WrapHandler(route.Handler))
	}
	return e
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: handler, Pattern: conformance.Colons})
}

// No rule applies to the routes of a mux below a route.
func TestNested(t *testing.T) {
	conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
		e := echo.New()
		e.Use(penstockecho.Middleware(opts...))
		e.GET("/plain/:id", echo.WrapHandler(plain))
		e.GET("/api/*", echo.WrapHandler(inner))
		return e
	})
}

// Origins and parameters can be read from values that earlier middleware has stored.
func TestValuesOfTheContext(t *testing.T) {
	g, err := api.New(api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{Resource: "GET /x", Param: "user", Threshold: 1, Interval: time.Hour, Missing: hotspot.MissingRefuse}}}); err != nil {
		t.Fatal(err)
	}
	opts := []nethttp.Option{nethttp.On(g), penstockecho.Param("user", "user"), nethttp.Origin(penstockecho.Value("tenant"))}
	var user any
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("tenant", "acme")
			if user != nil {
				c.Set("user", user)
			}
			return next(c)
		}
	}, penstockecho.Middleware(opts...))
	e.GET("/x", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
	do := func(as any) int {
		user = as
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
		return w.Code
	}
	for i, user := range []any{7, 7, "7", int64(8), nil, "ann", true} {
		status := do(user)
		if want := []int{200, 429, 429, 200, 429, 200, 200}[i]; status != want {
			t.Errorf("%v: %d, not %d", user, status, want)
		}
	}
	if _, found := g.Tree().Origin("GET /x", "acme"); !found {
		t.Error("there is no origin")
	}
}
