package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/upstream"
)

// answers is a transport without a network.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerOf(status int, header ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "body")
	return w.Result()
}

// upstreamOf returns a guard with a rule for all resources, on a clock that stands still.
func upstreamOf(t *testing.T, r upstream.Rule) *api.Guard {
	t.Helper()
	r.ID, r.Resource = "u", api.AnyResource
	g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	require.NoError(t, g.LoadRules(api.RuleSet{Upstream: []upstream.Rule{r}}))
	return g
}

func statsOf(g *api.Guard) upstream.Stats {
	f, _ := g.RuleStats()[0].Details.(upstream.Stats)
	return f
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	return r
}

// An answer of 429 or 503 that says when to come back pauses its method and host, as soon as the
// headers are there. Others, whatever they say, pause nothing.
func TestTransportObeys(t *testing.T) {
	const date = "Tue, 01 Dec 2026 10:00:00 GMT"
	for _, row := range []struct {
		status int
		header []string
		want   time.Duration
	}{
		{429, []string{"Retry-After", "30"}, 30 * time.Second},
		{503, []string{"Retry-After", "Tue, 01 Dec 2026 10:00:20 GMT", "Date", date}, 20 * time.Second},
		{429, []string{"RateLimit", `"default";r=0;t=10`}, 10 * time.Second},
		{429, []string{"Retry-After", "86400"}, 5 * time.Minute},
		{429, nil, 0}, {503, []string{"Retry-After", "-1"}, 0}, {429, []string{"Retry-After", strings.Repeat("9", 1000)}, 0},
		{429, []string{"Retry-After", "\x00\xff"}, 0}, {503, []string{"Retry-After", "Tue, 01 Dec 2020 10:00:20 GMT", "Date", date}, 0},
		{200, []string{"Retry-After", "30"}, 0}, {301, []string{"Retry-After", "30"}, 0}, {500, []string{"Retry-After", "30"}, 0},
		{200, []string{"RateLimit", `"default";r=0;t=10`}, 0},
	} {
		g := upstreamOf(t, upstream.Rule{Obey: true})
		transport := nethttp.Transport(answers(func(*http.Request) (*http.Response, error) { return answerOf(row.status, row.header...), nil }), nethttp.On(g))
		resp, err := transport.RoundTrip(request(t, "GET", "http://api.example.com/x"))
		require.NoError(t, err)
		again, err := transport.RoundTrip(request(t, "GET", "http://api.example.com/y")) // the body is not read yet
		if row.want == 0 {
			require.NoError(t, err, "%+v", row)
			_ = again.Body.Close()
		} else {
			var block *api.BlockError
			require.ErrorAs(t, err, &block, "%+v", row)
			assert.Equal(t, api.KindUpstream, block.Kind)
			require.Len(t, statsOf(g).Pauses, 1)
			assert.Equal(t, row.want, statsOf(g).Pauses[0].Until.Sub(time.Unix(1_700_000_000, 0)))
		}
		other, err := transport.RoundTrip(request(t, "GET", "http://www.example.com/"))
		require.NoError(t, err)
		_ = other.Body.Close()
		_ = resp.Body.Close()
	}
}

// A redirect to another host pauses that one, if http.Client follows it, and nothing if the transport
// below does.
func TestTransportKnowsWhoAnswered(t *testing.T) {
	g := upstreamOf(t, upstream.Rule{Obey: true, Throttle: upstream.Throttle{K: 1}})
	hops := answers(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "a.example.com" {
			return answerOf(http.StatusFound, "Location", "http://b.example.com/"), nil
		}
		resp := answerOf(429, "Retry-After", "30")
		resp.Request = r // as http.Transport does
		return resp, nil
	})
	client := &http.Client{Transport: nethttp.Transport(hops, nethttp.On(g))}
	resp, err := client.Do(request(t, "GET", "http://a.example.com/"))
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Len(t, statsOf(g).Pauses, 1)
	assert.Equal(t, "GET b.example.com", statsOf(g).Pauses[0].Name)

	g = upstreamOf(t, upstream.Rule{Obey: true, Throttle: upstream.Throttle{K: 1}})
	client = &http.Client{Transport: nethttp.Transport(answers(func(r *http.Request) (*http.Response, error) {
		return (&http.Client{Transport: hops}).Do(r)
	}), nethttp.On(g))}
	r := request(t, "GET", "http://a.example.com/")
	resp, err = client.Transport.RoundTrip(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Zero(t, statsOf(g).Paused)
	assert.EqualValues(t, 1, statsOf(g).Upstreams[0].Accepts)
}

// A balancer below, which sends requests to another host, doesn't hide who was asked: only a redirect
// does. known bug 288
func TestTransportObeysBelowABalancer(t *testing.T) {
	g := upstreamOf(t, upstream.Rule{Obey: true})
	balancer := answers(func(r *http.Request) (*http.Response, error) {
		sent := r.Clone(r.Context())
		sent.URL.Host = "10.0.0.7:80"
		resp := answerOf(503, "Retry-After", "30")
		resp.Request = sent
		return resp, nil
	})
	resp, err := nethttp.Transport(balancer, nethttp.On(g)).RoundTrip(request(t, "GET", "http://api.example.com/"))
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Len(t, statsOf(g).Pauses, 1)
	assert.Equal(t, "GET api.example.com", statsOf(g).Pauses[0].Name)
}

// Requests that their caller cancels are neither requests nor accepts, whoever decides on failures. A
// transport that panics, or gives up by itself, has no answer. Nothing stays open after a panic.
// known bug 289
func TestTransportWithoutAnswer(t *testing.T) {
	mine := errors.New("mine")
	failed := nethttp.Failure(func(*http.Request, int, error) bool { return true })
	for name, row := range map[string]struct {
		opt      nethttp.Option
		next     func(*http.Request) (*http.Response, error)
		cause    error
		requests int64
	}{
		"canceled":             {failed, func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() }, nil, 0},
		"canceled for a cause": {failed, func(r *http.Request) (*http.Response, error) { return nil, context.Cause(r.Context()) }, mine, 0},
		"gives up":             {failed, func(*http.Request) (*http.Response, error) { return nil, context.Canceled }, mine, 1},
		"panics":               {failed, func(*http.Request) (*http.Response, error) { panic("x") }, mine, 1},
		"failure panics":       {nethttp.Failure(func(*http.Request, int, error) bool { panic("f") }), func(*http.Request) (*http.Response, error) { return answerOf(200), nil }, mine, 1},
	} {
		g := upstreamOf(t, upstream.Rule{Throttle: upstream.Throttle{K: 1}})
		ctx, cancel := context.WithCancelCause(t.Context())
		if strings.HasPrefix(name, "canceled") {
			cancel(row.cause)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = nethttp.Transport(answers(row.next), nethttp.On(g), row.opt).RoundTrip(request(t, "GET", "http://api.example.com/").WithContext(ctx))
		}()
		got := statsOf(g).Upstreams[0]
		assert.Equal(t, []int64{row.requests, 0}, []int64{got.Requests, got.Accepts}, name)
		n, ok := g.Tree().Resource("GET api.example.com")
		assert.True(t, ok && n.InFlight == 0, name)
		cancel(nil)
	}
}

// Requests count as accepted unless the answer is 429 or 503, or there is none. Refusals of a transport
// below, and canceled requests, are no requests.
func TestTransportCountsAccepts(t *testing.T) {
	below := func(of api.RuleSet) http.RoundTripper {
		g, err := api.New(api.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = g.Close() })
		require.NoError(t, g.LoadRules(of))
		return nethttp.Transport(answers(func(*http.Request) (*http.Response, error) { return answerOf(429, "Retry-After", "60"), nil }), nethttp.On(g))
	}
	obeying := below(api.RuleSet{Upstream: []upstream.Rule{{Resource: api.AnyResource, Obey: true}}})
	resp, err := obeying.RoundTrip(request(t, "GET", "http://api.example.com/"))
	require.NoError(t, err)
	_ = resp.Body.Close()
	refused := errors.New("connection refused")
	for name, row := range map[string]struct {
		next              http.RoundTripper
		requests, accepts int64
	}{
		"200":       {answers(func(*http.Request) (*http.Response, error) { return answerOf(200), nil }), 1, 1},
		"500":       {answers(func(*http.Request) (*http.Response, error) { return answerOf(500), nil }), 1, 1},
		"429":       {answers(func(*http.Request) (*http.Response, error) { return answerOf(429), nil }), 1, 0},
		"503":       {answers(func(*http.Request) (*http.Response, error) { return answerOf(503), nil }), 1, 0},
		"no answer": {answers(func(*http.Request) (*http.Response, error) { return nil, refused }), 1, 0},
		"timeout":   {answers(func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }), 1, 0},
		"refusal":   {obeying, 0, 0},
	} {
		for _, failure := range []bool{false, true} {
			g := upstreamOf(t, upstream.Rule{Throttle: upstream.Throttle{K: 100}})
			var got []int
			opts := []nethttp.Option{nethttp.On(g)}
			if failure {
				opts = append(opts, nethttp.Failure(func(_ *http.Request, status int, err error) bool {
					got = append(got, status)
					return false
				}))
			}
			resp, err := nethttp.Transport(row.next, opts...).RoundTrip(request(t, "GET", "http://api.example.com/"))
			if err == nil {
				_ = resp.Body.Close()
			}
			s := statsOf(g).Upstreams[0]
			assert.Equal(t, []int64{row.requests, row.accepts}, []int64{s.Requests, s.Accepts}, "%s, %t", name, failure)
		}
	}
}

// Requests with a context of api.WithRetry are retries.
func TestTransportRetries(t *testing.T) {
	g := upstreamOf(t, upstream.Rule{Retries: upstream.Retries{Least: 1}})
	client := &http.Client{Transport: nethttp.Transport(answers(func(*http.Request) (*http.Response, error) { return answerOf(200), nil }), nethttp.On(g))}
	do := func(ctx context.Context) (*http.Response, error) {
		return client.Do(request(t, "GET", "http://api.example.com/").WithContext(ctx))
	}
	held, err := do(api.WithRetry(t.Context()))
	require.NoError(t, err)
	_, err = do(api.WithRetry(t.Context()))
	require.ErrorIs(t, err, api.ErrRetryBudget)
	plain, err := do(t.Context())
	require.NoError(t, err)
	_ = plain.Body.Close()
	_ = held.Body.Close()
}

// A breaker above sees no failure in a pause of an upstream rule below.
func TestPausesAreNoFailures(t *testing.T) {
	g := upstreamOf(t, upstream.Rule{Obey: true})
	outer, err := api.New(api.Config{})
	require.NoError(t, err)
	defer outer.Close()
	require.NoError(t, outer.LoadRules(api.RuleSet{Breaker: []breaker.Rule{{Resource: api.AnyResource, Threshold: 0.9, MinCalls: 2}}}))
	inner := nethttp.Transport(answers(func(*http.Request) (*http.Response, error) { return answerOf(429, "Retry-After", "60"), nil }), nethttp.On(g))
	client := &http.Client{Transport: nethttp.Transport(inner, nethttp.On(outer))}
	resp, err := client.Do(request(t, "GET", "http://api.example.com/"))
	require.NoError(t, err)
	_ = resp.Body.Close()
	for range 10 {
		_, err := client.Do(request(t, "GET", "http://api.example.com/"))
		require.Equal(t, api.KindUpstream, api.KindOf(err))
	}
	assert.Equal(t, breaker.Closed, outer.Breakers()[0].State)
}

// Many hosts whose answers ask for pauses take bounded memory, however long their names.
func TestManyHostsAskForPauses(t *testing.T) {
	g := upstreamOf(t, upstream.Rule{Obey: true, Scope: upstream.PerHost})
	transport := nethttp.Transport(answers(func(*http.Request) (*http.Response, error) {
		return answerOf(429, "Retry-After", strconv.Itoa(1<<20)), nil
	}), nethttp.On(g))
	for i := range 3000 {
		resp, err := transport.RoundTrip(request(t, "GET", fmt.Sprintf("http://host%d.%s/", i, strings.Repeat("x", 200))))
		require.NoError(t, err)
		_ = resp.Body.Close()
	}
	assert.Equal(t, 1000, statsOf(g).Paused)
	assert.EqualValues(t, 2000, statsOf(g).Missed)
}
