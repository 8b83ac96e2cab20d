package penstockfiber_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
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

// do sends a request to an App.
func do(t *testing.T, app *fiber.App, method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := app.Test(r, fiber.TestConfig{Timeout: 0})
	require.NoError(t, err)
	return resp
}

// names returns the names of all resources.
func names(g *api.Guard) (list []string) {
	for _, n := range g.Tree().Resources {
		list = append(list, n.Name)
	}
	return list
}

// An error that a handler returns counts as the status that fiber gives it; the refusal of a call
// of its own becomes a refusal.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		returns func(g *api.Guard, c fiber.Ctx) error
		status  int
		failed  int64
	}{
		"an error":              {func(*api.Guard, fiber.Ctx) error { return errors.New("no disk") }, 500, 1},
		"an Error":              {func(*api.Guard, fiber.Ctx) error { return fiber.NewError(503, "later") }, 503, 1},
		"a wrapped Error":       {func(*api.Guard, fiber.Ctx) error { return fmt.Errorf("user: %w", fiber.ErrNotFound) }, 404, 0},
		"an error that is none": {func(*api.Guard, fiber.Ctx) error { return api.Ignore(errors.New("cached")) }, 500, 0},
		"a status":              {func(_ *api.Guard, c fiber.Ctx) error { return c.Status(502).SendString("") }, 502, 1},
		"a nested refusal": {func(g *api.Guard, c fiber.Ctx) error {
			_ = c.SendString("half of it")
			_, err := g.Entry(c.Context(), "nested")
			return err
		}, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "nested", Threshold: 0}}})
			app := fiber.New()
			app.Use(penstockfiber.Middleware(nethttp.On(g)))
			app.Get("/x/:id", func(ctx fiber.Ctx) error { return c.returns(g, ctx) })
			resp := do(t, app, "GET", "/x/1")
			assert.Equal(t, c.status, resp.StatusCode)
			if c.status == 429 {
				assert.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
			}
			n, ok := g.Tree().Resource("GET /x/:id")
			require.True(t, ok)
			assert.Equal(t, c.failed, n.Lifetime.Exception)
			assert.Zero(t, n.InFlight)
		})
	}
}

// Routes are named by their patterns wherever the middleware stands, however they are written.
func TestNames(t *testing.T) {
	ok := func(c fiber.Ctx) error { return c.SendString("ok") }
	g := guard(t, api.RuleSet{})
	m := penstockfiber.Middleware(nethttp.On(g))
	app := fiber.New(fiber.Config{UnescapePath: true})
	app.Get("/single/:id", m, ok)
	app.Use("/v1", m)
	v1 := app.Group("/v1")
	v1.Get("/users/:id<int>", ok)
	v1.Get("/users/:name", ok)
	v1.Get("/files/*", ok)
	v1.All("/any", ok)
	sub := fiber.New()
	sub.Post("/deep/:a-:b?", ok)
	app.Use("/v1/sub", sub)
	for _, path := range []string{"GET /single/1", "GET /v1/users/7", "HEAD /V1/users/7/", "GET /v1/users/ann%20b", "GET /v1/files/a/b",
		"PUT /v1/any", "POST /v1/sub/deep/x-y", "GET /v1/no", "POST /v1/users/7", "GET /elsewhere"} {
		method, path, _ := strings.Cut(path, " ")
		do(t, app, method, path)
	}
	assert.ElementsMatch(t, []string{"GET /single/:id", "GET /v1/users/:id<int>", "GET /v1/users/:name", "GET /v1/files/*",
		"PUT /v1/any", "POST /v1/sub/deep/:a-:b?", "GET __unmatched__", "POST __unmatched__"}, names(g))
	n, _ := g.Tree().Resource("GET /v1/users/:id<int>")
	assert.EqualValues(t, 2, n.Lifetime.Pass, "HEAD gets round no rule for GET")
	do(t, app, "HEAD", "/single/1")
	n, _ = g.Tree().Resource("GET /single/:id")
	assert.EqualValues(t, 2, n.Lifetime.Pass, "nor does it on a route of its own")
	app.Head("/v1/only", ok)
	app.Get("/v1/later", ok)
	app.RebuildTree()
	do(t, app, "HEAD", "/v1/only")
	assert.Contains(t, names(g), "HEAD /v1/only", "which is there for HEAD alone")
	do(t, app, "GET", "/v1/later")
	assert.Contains(t, names(g), "GET /v1/later")
}

// Kept parts of a request are copies: fiber reuses its buffers for the next request.
func TestNothingOfTheBuffersIsKept(t *testing.T) {
	g := guard(t, api.RuleSet{Hotspot: []hotspot.Rule{{ID: "ids", Resource: "GET /users/:id", Param: "id", Threshold: 1, Interval: time.Hour}}})
	var mu sync.Mutex
	var seen []*http.Request
	app := fiber.New()
	app.Use(penstockfiber.Middleware(nethttp.On(g), nethttp.Origin(nethttp.Header("X-App")), nethttp.Param("id", nethttp.PathValue("id")),
		nethttp.WithOptions(func(r *http.Request) []api.Option {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r)
			return nil
		})))
	app.Get("/users/:id", func(c fiber.Ctx) error { return c.SendString("ok") })
	url := serve(t, app)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/users/id%d?q=%d", url, n, n), nil)
		require.NoError(t, err)
		r.Header.Set("X-App", fmt.Sprintf("app%d", n))
		r.AddCookie(&http.Cookie{Name: "c", Value: fmt.Sprint(n)})
		resp, err := client.Do(r)
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
	resp, err := client.Get(url + "/users/id0")
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, 429, resp.StatusCode)
}

// Custom refusal responses see the request, and have only the headers that they set.
func TestOwnRefusals(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "GET /x", Threshold: 0}}})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(nethttp.On(g), nethttp.Refuse(func(w http.ResponseWriter, r *http.Request, err error) {
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // comes too late
	})))
	app.Get("/x", func(c fiber.Ctx) error { return nil })
	resp := do(t, app, "GET", "/x")
	assert.Equal(t, http.StatusTeapot, resp.StatusCode)
	assert.Equal(t, "/x", resp.Header.Get("X-Path"))
}

// fiber's own streams hold the call until they have been sent.
func TestAStreamHoldsTheCall(t *testing.T) {
	g := guard(t, api.RuleSet{})
	release := make(chan struct{})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(nethttp.On(g)))
	app.Get("/events", func(c fiber.Ctx) error {
		c.Set("Content-Type", "text/event-stream; charset=utf-8")
		return c.SendStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("data: 0\n\n")
			_ = w.Flush()
			<-release
		})
	})
	resp, err := http.Get(serve(t, app) + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "data: 0\n", line)
	n, _ := g.Tree().Resource("GET /events")
	assert.Equal(t, int64(1), n.InFlight)
	close(release)
	until(t, func() bool {
		n, _ := g.Tree().Resource("GET /events")
		return n.InFlight == 0 && n.Lifetime.LongLived == 1
	})
}

// fasthttp drops a request whose connection breaks while it is taken over.
func TestAConnectionThatBreaksWhenItIsTakenOver(t *testing.T) {
	g := guard(t, api.RuleSet{})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(nethttp.On(g), nethttp.HoldHijacked()))
	app.Get("/socket", func(c fiber.Ctx) error {
		c.RequestCtx().HijackSetNoResponse(true)
		c.RequestCtx().Hijack(func(net.Conn) {})
		return c.RequestCtx().Conn().Close()
	})
	_, err := http.Get(serve(t, app) + "/socket")
	require.Error(t, err)
	until(t, func() bool {
		runtime.GC()
		n, _ := g.Tree().Resource("GET /socket")
		return n.InFlight == 0 && n.Lifetime.Complete == 1
	})
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	require.True(t, meet.Until(meet.Patience, ok), "it never comes to pass")
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
	opts := []nethttp.Option{nethttp.On(g), penstockfiber.Param("user", "user"), nethttp.Origin(penstockfiber.Value("tenant"))}
	var user any
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		c.Locals("tenant", "acme")
		if user != nil {
			c.Locals("user", user)
		}
		return c.Next()
	}, penstockfiber.Middleware(opts...))
	app.Get("/x", func(c fiber.Ctx) error { return c.SendStatus(http.StatusOK) })
	ask := func(as any) int {
		user = as
		resp := do(t, app, http.MethodGet, "/x")
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
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		c.Set("X-Request-Id", "7")
		c.Set("X-Secret", "s")
		return c.Next()
	}, penstockfiber.Middleware(nethttp.On(g), nethttp.Refuse(func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.Header().Set("X-Seen", w.Header().Get("X-Request-Id"))
		w.Header().Del("X-Secret")
		w.WriteHeader(http.StatusConflict)
	})))
	app.Get("/x", func(c fiber.Ctx) error { return c.SendStatus(http.StatusOK) })
	resp := do(t, app, http.MethodGet, "/x")
	defer resp.Body.Close()
	assert.Equal(t, http.StatusConflict, resp.StatusCode)
	assert.Equal(t, []string{"7", "7", ""}, []string{resp.Header.Get("X-Request-Id"), resp.Header.Get("X-Seen"), resp.Header.Get("X-Secret")})
}
