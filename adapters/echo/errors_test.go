package penstockecho_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// An error that a handler returns counts as the status that echo gives it; the refusal of a call of
// its own becomes a refusal.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		returns func(g *api.Guard, r *http.Request) error
		status  int
		failed  int64
	}{
		"an error":              {func(*api.Guard, *http.Request) error { return errors.New("no disk") }, 500, 1},
		"an HTTPError":          {func(*api.Guard, *http.Request) error { return echo.NewHTTPError(503, "later") }, 503, 1},
		"an HTTPError of yours": {func(*api.Guard, *http.Request) error { return echo.NewHTTPError(404, "none") }, 404, 0},
		"an error that is none": {func(*api.Guard, *http.Request) error { return api.Ignore(errors.New("cached")) }, 500, 0},
		"a nested refusal": {func(g *api.Guard, r *http.Request) error {
			_, err := g.Entry(r.Context(), "nested")
			return err
		}, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := api.New(api.Config{})
			require.NoError(t, err)
			defer g.Close()
			require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "nested", Threshold: 0}}}))
			e := echo.New()
			e.Use(penstockecho.Middleware(nethttp.On(g)))
			e.GET("/x/:id", func(ctx *echo.Context) error { return c.returns(g, ctx.Request()) })
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x/1", nil))
			assert.Equal(t, c.status, w.Code, w.Body)
			n, ok := g.Tree().Resource("GET /x/:id")
			require.True(t, ok)
			assert.Equal(t, c.failed, n.Lifetime.Exception)
			assert.Zero(t, n.InFlight)
		})
	}
}
