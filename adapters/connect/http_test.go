package penstockconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

// post calls a procedure with plain HTTP.
func post(h http.Handler, procedure string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, procedure, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A plain HTTP client reads the status, and when to retry.
func TestARefusalOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		set    api.RuleSet
		status int
		header http.Header
	}{
		"flow": {api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: unary, Threshold: 0, Interval: time.Hour}}}, 429, nil},
		"token bucket": {api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: unary, Threshold: 1, Interval: time.Hour, Behavior: flow.TokenBucket}}},
			429, http.Header{"Retry-After": {"3600"}, "Grpc-Retry-Pushback-Ms": {"3600000"}}},
		"authority": {api.RuleSet{Authority: []authority.Rule{{ID: "secret", Resource: unary, List: authority.Deny, Origins: []string{"ann"}}}},
			403, http.Header{"Grpc-Retry-Pushback-Ms": {"-1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
			require.NoError(t, err)
			defer g.Close()
			require.NoError(t, g.LoadRules(c.set))
			h := handlers(&rpctest.Service{Unary: func(context.Context) error { return nil }}, connect.WithInterceptors(
				penstockconnect.Interceptor(options(rpctest.Options{Guard: g, Origin: "ann"})...)))
			w := post(h, unary)
			if w.Code == http.StatusOK {
				w = post(h, unary)
			}
			assert.Equal(t, c.status, w.Code)
			assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			for name, value := range c.header {
				assert.Equal(t, value, w.Header()[name])
			}
			assert.Contains(t, w.Body.String(), "google.rpc.ErrorInfo")
			assert.NotContains(t, w.Body.String(), "secret")
		})
	}
}

// gRPC reports a refusal in trailers, without any that HTTP can't carry: a server would log each of
// those.
func TestARefusalByGRPC(t *testing.T) {
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: unary, Threshold: 0}}}))
	h := handlers(&rpctest.Service{Unary: func(context.Context) error { return nil }}, connect.WithInterceptors(
		penstockconnect.Interceptor(options(rpctest.Options{Guard: g})...)))
	r := httptest.NewRequest(http.MethodPost, unary, strings.NewReader("\x00\x00\x00\x00\x00"))
	r.Header.Set("Content-Type", "application/grpc+proto")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	metadata := fmt.Sprint(w.Result().Header, w.Result().Trailer)
	assert.Contains(t, metadata, "Grpc-Status:[8]")
	assert.NotContains(t, metadata, "Cache-Control")
}

// connect reports an unmodified response as an error, which is not a failure.
func TestNotModifiedIsNoFailure(t *testing.T) {
	g := guard(t, api.RuleSet{})
	h := handlers(&rpctest.Service{Unary: func(context.Context) error { return connect.NewNotModifiedError(nil) }},
		connect.WithIdempotency(connect.IdempotencyNoSideEffects), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g))))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, unary+"?encoding=json&message=%7B%7D", nil))
	assert.Equal(t, http.StatusNotModified, w.Code, w.Body)
	counted(t, g, unary, 1, 0, 0)
}

// A handler that aborts because its client has disconnected has not failed; otherwise it has.
func TestAborts(t *testing.T) {
	for name, failed := range map[string]int64{"the client has disconnected": 0, "the client is there": 1} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, api.RuleSet{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := handlers(&rpctest.Service{Unary: func(context.Context) error {
				if failed == 0 {
					cancel()
				}
				panic(http.ErrAbortHandler)
			}}, connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g))))
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, unary, strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			assert.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { h.ServeHTTP(httptest.NewRecorder(), r) })
			counted(t, g, unary, 1, failed, 0)
		})
	}
}

// A refused probe would get the process restarted.
func TestHealthIsNotGuarded(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: ".*", Match: api.MatchRegex, Threshold: 0}}})
	const check = "/grpc.health.v1.Health/Check"
	h := connect.NewUnaryHandler(check, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(&emptypb.Empty{}), nil
	}, connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g))))
	assert.Equal(t, http.StatusOK, post(h, check).Code)
	assert.Empty(t, g.Tree().Resources)
	const made = "/grpc.health.v1.Health/Made"
	h = connect.NewUnaryHandler(made, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(&emptypb.Empty{}), nil
	}, connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g))))
	assert.Equal(t, http.StatusTooManyRequests, post(h, made).Code, "exemptions are exact names")
}

// A refusal that a handler got from its own client passes on unchanged, and names no rule.
func TestARefusalOfAHandlersClient(t *testing.T) {
	inside := guard(t, api.RuleSet{Flow: []flow.Rule{{ID: "secret", Resource: unary, Threshold: 0}}})
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](http.DefaultClient, "http://127.0.0.1:1"+unary,
		connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(inside))))
	g := guard(t, api.RuleSet{})
	w := post(handlers(&rpctest.Service{Unary: func(ctx context.Context) error {
		_, err := client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
		return errors.Join(err, io.EOF)
	}}, connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)))), unary)
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.NotContains(t, w.Body.String(), "secret")
	counted(t, g, unary, 1, 0, 0)
}

// A call's client is the other end of its connection, or the client that a trusted proxy names.
func TestClientAddresses(t *testing.T) {
	g := guard(t, api.RuleSet{Hotspot: []hotspot.Rule{{
		Resource: ".*", Match: api.MatchRegex, Param: "client", Threshold: 1, Interval: time.Hour, Missing: hotspot.MissingRefuse,
	}}})
	proxies := nethttp.Proxies{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, UnixSocket: true}
	opts := connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g), penstockconnect.Param("client", proxies.ClientIP())))
	h := handlers(&rpctest.Service{Unary: func(context.Context) error { return nil }}, opts)
	call := func(remote, forwarded string) int {
		r := httptest.NewRequest(http.MethodPost, unary, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", forwarded)
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, 200, call("10.0.0.1:80", "203.0.113.1"))
	assert.Equal(t, 429, call("10.0.0.1:80", "203.0.113.1:4711"))
	assert.Equal(t, 429, call("@", "203.0.113.1"))
	assert.Equal(t, 429, call("", "203.0.113.1"))
	assert.Equal(t, 429, call("203.0.113.1", "203.0.113.2"))
	assert.Equal(t, 200, call("203.0.113.7", "203.0.113.2"))
	assert.Equal(t, 200, call("", "[2001:db8::1]:443"))
	assert.Equal(t, 429, call("nobody", "203.0.113.9"))

	srv := httptest.NewServer(handlers(&rpctest.Service{Stream: func(context.Context, func() error) error { return nil }}, opts))
	defer srv.Close()
	for _, refused := range []bool{false, true} {
		client := connect.NewClient[emptypb.Empty, emptypb.Empty](srv.Client(), srv.URL+stream)
		s, err := client.CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
		require.NoError(t, err)
		assert.False(t, s.Receive())
		assert.Equal(t, refused, connect.CodeOf(s.Err()) == connect.CodeResourceExhausted, s.Err())
		_ = s.Close()
	}
}
