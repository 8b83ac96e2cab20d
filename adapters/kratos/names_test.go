package penstockkratos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// guard returns a guard with these rules that lives until the test ends.
func guard(t *testing.T, set api.RuleSet) *api.Guard {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	require.NoError(t, g.LoadRules(set))
	return g
}

// names returns the names of all resources.
func names(g *api.Guard) (list []string) {
	for _, n := range g.Tree().Resources {
		list = append(list, n.Name)
	}
	return list
}

// route adds a route without generated code, whose handler calls the middleware.
func route(srv *khttp.Server, path string, handler func(ctx context.Context) error) {
	srv.Route("/").GET(path, func(c khttp.Context) error {
		out, err := c.Middleware(func(ctx context.Context, _ any) (any, error) { return &emptypb.Empty{}, handler(ctx) })(c, nil)
		if err != nil {
			return err
		}
		return c.Result(http.StatusOK, out)
	})
}

// Without named operations, neither paths nor unknown routes make resources.
func TestNamesWithoutOperations(t *testing.T) {
	atServer, atClient := guard(t, api.RuleSet{}), guard(t, api.RuleSet{})
	address := serveHTTP(t, func(srv *khttp.Server) {
		route(srv, "/users/{id}", func(context.Context) error { return nil })
		route(srv, "/plain", func(context.Context) error { return nil })
	}, khttp.Middleware(penstockkratos.Server(penstockkratos.On(atServer))))
	client := dialHTTP(t, address, penstockkratos.On(atClient))
	for n := range 50 {
		require.NoError(t, client.Invoke(t.Context(), http.MethodGet, fmt.Sprintf("/users/%d", n), nil, &emptypb.Empty{}))
		require.NoError(t, client.Invoke(t.Context(), http.MethodGet, fmt.Sprintf("/users/%d?q=%d", n, n), nil, &emptypb.Empty{}))
		require.NoError(t, client.Invoke(t.Context(), http.MethodGet, fmt.Sprintf("/users/a%%20%d?q=%d#%d", n, n, n), nil, &emptypb.Empty{}))
		err := client.Invoke(t.Context(), http.MethodGet, fmt.Sprintf("/no/%d", n), nil, &emptypb.Empty{})
		assert.Equal(t, http.StatusNotFound, kerrors.Code(err), err)
	}
	require.NoError(t, client.Invoke(t.Context(), http.MethodGet, "/plain", nil, &emptypb.Empty{}))
	assert.ElementsMatch(t, []string{"GET /users/{id}", "GET /plain"}, names(atServer))
	assert.Equal(t, []string{"GET " + address}, names(atClient))
	n, _ := atClient.Tree().Resource("GET " + address)
	assert.Equal(t, [3]int64{201, 0, 0}, [3]int64{n.Lifetime.Complete, n.Lifetime.Exception, n.InFlight})
}

// All spellings of a client's host are one resource.
func TestClientsSpellHosts(t *testing.T) {
	g := guard(t, api.RuleSet{})
	for _, endpoint := range []string{"http://127.0.0.1:80", "http://LOCALHOST", "http://localhost.:80", "localhost:80"} {
		client, err := khttp.NewClient(t.Context(), khttp.WithEndpoint(endpoint), khttp.WithMiddleware(penstockkratos.Client(penstockkratos.On(g))),
			khttp.WithTransport(refuses{}))
		require.NoError(t, err)
		require.Error(t, client.Invoke(t.Context(), http.MethodGet, "/x", nil, &emptypb.Empty{}))
	}
	assert.ElementsMatch(t, []string{"GET 127.0.0.1", "GET localhost"}, names(g))
}

// refuses is a transport that reaches nobody.
type refuses struct{}

func (refuses) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody is there")
}

// A plain HTTP client reads the status, and when to retry.
func TestARefusalOverHTTP(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: "GET /x", Threshold: 1, Interval: time.Hour}}})
	address := serveHTTP(t, func(srv *khttp.Server) { route(srv, "/x", func(context.Context) error { return nil }) },
		khttp.Middleware(penstockkratos.Server(penstockkratos.On(g))))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, status := range []int{200, 429} {
		resp, err := client.Get("http://" + address + "/x")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, status, resp.StatusCode)
		if status == 429 {
			assert.NotEmpty(t, resp.Header.Get("Retry-After"))
			assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
			assert.Contains(t, string(body), "FLOW_BLOCKED")
			assert.NotContains(t, string(body), "secret")
		}
	}
}

// kratos errors without a gRPC code count by their status.
func TestCodesOfHTTPThatGRPCHasNot(t *testing.T) {
	for status, failed := range map[int]int64{418: 0, 422: 0, 499: 0, 500: 1, 502: 1, 501: 0, 507: 1} {
		g := guard(t, api.RuleSet{})
		address := serveHTTP(t, func(srv *khttp.Server) {
			route(srv, "/x", func(context.Context) error {
				return fmt.Errorf("below: %w", kerrors.New(status, "", "").WithCause(errors.New("a cause")))
			})
		}, khttp.Middleware(penstockkratos.Server(penstockkratos.On(g))))
		err := dialHTTP(t, address).Invoke(t.Context(), http.MethodGet, "/x", nil, &emptypb.Empty{})
		assert.Equal(t, status, kerrors.Code(err), err)
		n, _ := g.Tree().Resource("GET /x")
		assert.Equal(t, [2]int64{1, failed}, [2]int64{n.Lifetime.Complete, n.Lifetime.Exception}, status)
	}
}

// A refusal below two middlewares is reported once, and counts as a failure of neither.
func TestTwoMiddlewares(t *testing.T) {
	outer, inner := guard(t, api.RuleSet{}), guard(t, api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: "GET /x", Threshold: 0}}})
	address := serveHTTP(t, func(srv *khttp.Server) { route(srv, "/x", func(context.Context) error { return nil }) },
		khttp.Middleware(penstockkratos.Server(penstockkratos.On(outer)), penstockkratos.Server(penstockkratos.On(inner))))
	err := dialHTTP(t, address).Invoke(t.Context(), http.MethodGet, "/x", nil, &emptypb.Empty{})
	assert.Equal(t, "FLOW_BLOCKED", kerrors.Reason(err), err)
	n, _ := outer.Tree().Resource("GET /x")
	assert.Equal(t, [2]int64{1, 0}, [2]int64{n.Lifetime.Complete, n.Lifetime.Exception})
}

// A middleware without a transport lets everything pass.
func TestWithoutATransport(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: ".*", Match: api.MatchRegex, Threshold: 0}}})
	pass := func(context.Context, any) (any, error) { return "ok", nil }
	for _, m := range []any{
		first(penstockkratos.Server(penstockkratos.On(g))(pass)(t.Context(), nil)),
		first(penstockkratos.Client(penstockkratos.On(g))(pass)(t.Context(), nil)),
	} {
		assert.Equal(t, "ok", m)
	}
	assert.Empty(t, strings.Join(names(g), ""))
}

func first(v any, _ error) any { return v }
