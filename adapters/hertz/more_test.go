package penstockhertz_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/network"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockhertz "github.com/penstock-go/penstock/adapters/hertz"
	"github.com/penstock-go/penstock/adapters/internal/meet"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

// guard returns a guard with these rules that lives until the test ends.
func guard(t *testing.T, set api.RuleSet) *api.Guard {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	require.NoError(t, g.LoadRules(set))
	return g
}

// client returns an HTTP client that keeps its connections until the test ends.
func client(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{}, Timeout: meet.Patience}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	require.True(t, meet.Until(meet.Patience, ok), "it never comes to pass")
}

// A handler responds with the refusal of a nested call; an error that it leaves behind counts if
// the user's function says so.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		does   func(g *api.Guard, ctx context.Context, c *app.RequestContext)
		status int
		failed int64
	}{
		"a nested refusal": {func(g *api.Guard, ctx context.Context, c *app.RequestContext) {
			c.String(200, "half of it")
			_, err := g.Entry(ctx, "nested")
			assert.True(t, penstockhertz.Refuse(ctx, c, fmt.Errorf("billing: %w", err)))
		}, 429, 0},
		"another error": {func(_ *api.Guard, ctx context.Context, c *app.RequestContext) {
			assert.False(t, penstockhertz.Refuse(ctx, c, io.EOF))
			c.Status(502)
		}, 502, 1},
		"an error that is left behind": {func(_ *api.Guard, ctx context.Context, c *app.RequestContext) {
			_ = c.Error(errors.New("no disk"))
		}, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "nested", Threshold: 0}}})
			url := serve(t, func(h *server.Hertz) {
				h.Use(penstockhertz.Middleware(nethttp.On(g), nethttp.Failure(func(_ *http.Request, status int, err error) bool {
					return status >= 500 || err != nil
				})))
				h.GET("/x", func(ctx context.Context, rc *app.RequestContext) { c.does(g, ctx, rc) })
			})
			resp, err := client(t).Get(url + "/x")
			require.NoError(t, err)
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			assert.Equal(t, c.status, resp.StatusCode)
			if c.status == 429 {
				assert.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
				assert.NotContains(t, string(body), "half")
			}
			until(t, func() bool {
				n, _ := g.Tree().Resource("GET /x")
				return n.Lifetime.Complete == 1 && n.Lifetime.Exception == c.failed
			})
		})
	}
}

// Kept parts of a request are copies: hertz reuses its buffers for the next request.
func TestNothingOfTheBuffersIsKept(t *testing.T) {
	g := guard(t, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "ids", Resource: "GET /users/:id", Param: "id", Threshold: 1, Interval: time.Hour}}})
	var mu sync.Mutex
	var seen []*http.Request
	url := serve(t, func(h *server.Hertz) {
		h.Use(penstockhertz.Middleware(nethttp.On(g), nethttp.Origin(nethttp.Header("X-App")), nethttp.Param("id", nethttp.PathValue("id")),
			nethttp.WithOptions(func(r *http.Request) []api.Option {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, r)
				return nil
			})))
		h.GET("/users/:id", func(_ context.Context, c *app.RequestContext) { c.String(200, "ok") })
	})
	to := client(t)
	for n := range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/users/id%d?q=%d", url, n, n), nil)
		require.NoError(t, err)
		r.Header.Set("X-App", fmt.Sprintf("app%d", n))
		r.AddCookie(&http.Cookie{Name: "c", Value: fmt.Sprint(n)})
		resp, err := to.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode, n)
	}
	mu.Lock()
	all := slices.Clone(seen)
	mu.Unlock()
	for n, r := range all {
		want, app := fmt.Sprint(n), fmt.Sprintf("app%d", n)
		cookie, err := r.Cookie("c")
		require.NoError(t, err)
		assert.Equal(t, []string{"GET", "GET /users/:id", "/users/id" + want, "id" + want, want, app, want, strings.TrimPrefix(url, "http://")},
			[]string{r.Method, r.Method + " " + r.Pattern, r.URL.Path, r.PathValue("id"), r.URL.Query().Get("q"), r.Header.Get("X-App"), cookie.Value, r.Host})
		_, ok := g.Tree().Origin("GET /users/:id", app)
		assert.True(t, ok, app)
	}
	resp, err := to.Get(url + "/users/id0")
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, 429, resp.StatusCode)
}

// Routes are named by their patterns; a request rejected with 405 has no route.
func TestNames(t *testing.T) {
	g := guard(t, api.RuleSet{})
	ok := func(_ context.Context, c *app.RequestContext) { c.String(200, "ok") }
	url := serve(t, func(h *server.Hertz) {
		h.Use(penstockhertz.Middleware(nethttp.On(g)))
		v1 := h.Group("/v1")
		v1.GET("/users/:id", ok)
		v1.GET("/files/*path", ok)
		v1.Any("/any", ok)
	})
	to := client(t)
	for _, request := range []string{"GET /v1/users/7", "GET /v1/files/a/b", "PUT /v1/any", "POST /v1/users/7", "GET /elsewhere"} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		require.NoError(t, err)
		resp, err := to.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
	}
	var names []string
	for _, n := range g.Tree().Resources {
		names = append(names, n.Name)
	}
	assert.ElementsMatch(t, []string{"GET /v1/users/:id", "GET /v1/files/*path", "PUT /v1/any", "POST __unmatched__", "GET __unmatched__"}, names)
}

// A streamed response body holds the call until it has been sent.
func TestAStreamHoldsTheCall(t *testing.T) {
	g := guard(t, api.RuleSet{})
	body, to := io.Pipe()
	url := serve(t, func(h *server.Hertz) {
		h.Use(penstockhertz.Middleware(nethttp.On(g)))
		h.GET("/events", func(_ context.Context, c *app.RequestContext) {
			c.SetContentType("text/event-stream; charset=utf-8")
			c.SetBodyStream(body, -1)
		})
	})
	go func() { _, _ = io.WriteString(to, "data: 0\n\n") }()
	resp, err := client(t).Get(url + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	n, _ := g.Tree().Resource("GET /events")
	assert.Equal(t, int64(1), n.InFlight)
	_ = to.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "data: 0\n\n", string(text))
	until(t, func() bool {
		n, _ := g.Tree().Resource("GET /events")
		return n.InFlight == 0 && n.Lifetime.LongLived == 1
	})
}

// A connection that breaks while it is taken over leaks nothing.
func TestAConnectionThatBreaksWhenItIsTakenOver(t *testing.T) {
	g := guard(t, api.RuleSet{})
	url := serve(t, func(h *server.Hertz) {
		h.Use(penstockhertz.Middleware(nethttp.On(g), nethttp.HoldHijacked()))
		h.GET("/socket", func(_ context.Context, c *app.RequestContext) {
			c.Hijack(func(network.Conn) {})
			_ = c.GetConn().Close()
		})
	})
	_, err := client(t).Get(url + "/socket")
	require.Error(t, err)
	until(t, func() bool {
		n, _ := g.Tree().Resource("GET /socket")
		return n.InFlight == 0 && n.Lifetime.Complete == 1
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
	opts := []nethttp.Option{nethttp.On(g), penstockhertz.Param("user", "user"), nethttp.Origin(penstockhertz.Value("tenant"))}
	var user any
	url := serve(t, func(h *server.Hertz) {
		h.Use(func(_ context.Context, c *app.RequestContext) {
			c.Set("tenant", "acme")
			if user != nil {
				c.Set("user", user)
			}
		}, penstockhertz.Middleware(opts...))
		h.GET("/x", func(_ context.Context, c *app.RequestContext) { c.SetStatusCode(http.StatusOK) })
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ask := func(as any) int {
		user = as
		resp, err := http.Get(url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for i, user := range []any{7, 7, "7", int64(8), nil, "ann", true} {
		status := ask(user)
		if want := []int{200, 429, 429, 200, 429, 200, 200}[i]; status != want {
			t.Errorf("%v: %d, not %d", user, status, want)
		}
	}
	if _, found := g.Tree().Origin("GET /x", "acme"); !found {
		t.Error("there is no origin")
	}
}

// A custom refusal response sees the headers that an earlier middleware has set, and may remove
// them.
func TestRefuseSeesTheHeadersOfOthers(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "GET /x", Threshold: 0}}})
	url := serve(t, func(h *server.Hertz) {
		h.Use(func(_ context.Context, c *app.RequestContext) {
			c.Header("X-Request-Id", "7")
			c.Header("X-Secret", "s")
		}, penstockhertz.Middleware(nethttp.On(g), nethttp.Refuse(func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("X-Seen", w.Header().Get("X-Request-Id"))
			w.Header().Del("X-Secret")
			w.WriteHeader(http.StatusConflict)
		})))
		h.GET("/x", func(_ context.Context, c *app.RequestContext) { c.SetStatusCode(http.StatusOK) })
	})
	resp, err := client(t).Get(url + "/x")
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusConflict, resp.StatusCode)
	assert.Equal(t, []string{"7", "7", ""}, []string{resp.Header.Get("X-Request-Id"), resp.Header.Get("X-Seen"), resp.Header.Get("X-Secret")})
}
