package penstockgin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

func handler(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), penstockgin.Middleware(opts...))
	r.HandleMethodNotAllowed = true
	for _, route := range routes {
		r.Handle(route.Method, conformance.Colons(route.Pattern), func(c *gin.Context) { route.Handler(c.Writer, c.Request) })
	}
	return r
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: handler, Pattern: conformance.Colons})
}

// No rule applies to the routes of a mux below a route.
func TestNested(t *testing.T) {
	conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
		r := gin.New()
		r.Use(penstockgin.Middleware(opts...))
		r.GET("/plain/:id", gin.WrapH(plain))
		r.GET("/api/*path", gin.WrapH(inner))
		return r
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
	opts := []nethttp.Option{nethttp.On(g), penstockgin.Param("user", "user"), nethttp.Origin(penstockgin.Value("tenant"))}
	var user any
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Set("tenant", "acme")
		if user != nil {
			c.Set("user", user)
		}
	}, penstockgin.Middleware(opts...))
	r.GET("/x", func(c *gin.Context) { c.Status(http.StatusOK) })
	do := func(as any) int {
		user = as
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
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
