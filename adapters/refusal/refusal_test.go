package refusal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/upstream"
)

// refusedBy returns an error of the given kind without details.
func refusedBy(k api.Kind) error { return &api.BlockError{Kind: k, Resource: "orders", Rule: "secret"} }

// The table in the package's documentation is right, and every kind has a row in it.
func TestReportsOfKinds(t *testing.T) {
	rows := map[api.Kind]struct {
		status int
		code   refusal.Code
	}{
		api.KindFlow: {429, 8}, api.KindHotspot: {429, 8}, api.KindIsolation: {429, 8},
		api.KindBreaker: {503, 14}, api.KindSystem: {503, 14}, api.KindAdaptive: {503, 14}, api.KindOutlier: {503, 14}, api.KindUpstream: {503, 14},
		api.KindCustom: {503, 14}, api.KindAuthority: {403, 7},
	}
	for k := api.KindNone + 1; ; k++ {
		if _, err := k.MarshalText(); err != nil {
			break
		}
		want, ok := rows[k]
		require.True(t, ok, k)
		r := refusal.Of(fmt.Errorf("below: %w", refusedBy(k)))
		assert.Equal(t, refusal.Blocked, r.Reason)
		assert.Equal(t, want.status, r.HTTPStatus(), k)
		s := r.GRPC()
		assert.Equal(t, want.code, s.Code, k)
		assert.Equal(t, strings.ToUpper(k.String())+"_BLOCKED", s.Reason)
		assert.Equal(t, map[string]string{"resource": "orders"}, s.Metadata)
		assert.NotContains(t, s.Message, "secret")
		assert.Regexp(t, `by (an [aeiou]|a [^aeiou])\w+ rule$`, s.Message)
		assert.Equal(t, map[bool]string{true: "-1"}[k == api.KindAuthority], s.Pushback, k)
	}
}

// A retry that is refused for want of a budget is not to be retried.
func TestSpentRetriesAreFinal(t *testing.T) {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{Upstream: []upstream.Rule{{Resource: "orders", Retries: upstream.Retries{Least: 1}}}}))
	e, err := g.Entry(t.Context(), "orders", api.Retry())
	require.NoError(t, err)
	defer e.Exit()
	_, err = g.Entry(t.Context(), "orders", api.Retry())
	require.ErrorIs(t, err, api.ErrRetryBudget)
	r := refusal.Of(err)
	assert.Equal(t, "-1", r.GRPC().Pushback)
	assert.Equal(t, 503, r.HTTPStatus())
	_, known := r.RetryAfter(time.Second)
	assert.False(t, known)
}

// Calls that gave up, were refused, or whose client disconnected are distinguished.
func TestReasons(t *testing.T) {
	waited := func(cause error) error { return errors.Join(refusedBy(api.KindFlow), cause) }
	for _, c := range []struct {
		err    error
		reason refusal.Reason
		status int
		code   refusal.Code
	}{
		{nil, refusal.None, 0, 0},
		{io.EOF, refusal.None, 0, 0},
		{context.Canceled, refusal.None, 0, 0},
		{waited(context.DeadlineExceeded), refusal.GaveUp, 503, 4},
		{waited(context.Canceled), refusal.Gone, 499, 1},
		{fmt.Errorf("call: %w", api.ErrInvalid), refusal.Invalid, 500, 13},
		{waited(api.ErrDraining), refusal.Closing, 503, 14},
	} {
		r := refusal.Of(c.err)
		assert.Equal(t, c.reason, r.Reason, c.err)
		assert.Equal(t, c.status, r.HTTPStatus(), c.err)
		assert.Equal(t, c.code, r.GRPC().Code, c.err)
		after, known := r.RetryAfter(time.Second)
		assert.Equal(t, c.reason == refusal.Closing, known)
		assert.Equal(t, known, after == 1)
	}
}

// When a refusal can be retried, every form of it rounds the wait up.
func TestRetryAfter(t *testing.T) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	g, err := api.New(api.Config{Clock: clock})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 1, Interval: 2500 * time.Millisecond,
		Behavior: flow.TokenBucket}}}))
	e, err := g.Entry(t.Context(), "orders")
	require.NoError(t, err)
	e.Exit()
	_, err = g.Entry(t.Context(), "orders")
	require.Error(t, err)
	s := refusal.Of(err).GRPC()
	assert.Equal(t, "2500", s.Pushback)
	assert.Equal(t, 2500*time.Millisecond, s.RetryDelay)

	for form, want := range map[refusal.Headers]http.Header{
		refusal.NoHeaders:  {},
		refusal.RateLimit:  {"Ratelimit-Policy": {`"flow";q=1;w=3`}, "Ratelimit": {`"flow";r=0;t=3`}},
		refusal.Legacy:     {"Ratelimit-Limit": {"1"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"3"}},
		refusal.XRateLimit: {"X-Ratelimit-Limit": {"1"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"3"}},
	} {
		w := httptest.NewRecorder()
		require.True(t, refusal.WriteWith(w, httptest.NewRequest("GET", "/", nil), err, form))
		want.Set("Retry-After", "3")
		want.Set("Cache-Control", "no-store")
		want.Set("Content-Type", refusal.ProblemType)
		want.Set("Content-Length", fmt.Sprint(w.Body.Len()))
		assert.Equal(t, want, w.Header(), form)
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.JSONEq(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
			"title":"Too Many Requests","status":429,"detail":"Try again in 3 s."}`, w.Body.String())
	}
}

// Write leaves errors that aren't refusals to the caller; a response to HEAD has no body.
func TestWrite(t *testing.T) {
	w := httptest.NewRecorder()
	assert.False(t, refusal.Write(w, httptest.NewRequest("GET", "/", nil), io.EOF))
	assert.False(t, refusal.Write(w, httptest.NewRequest("GET", "/", nil), nil))
	assert.Empty(t, w.Header())
	assert.True(t, refusal.Write(w, httptest.NewRequest("HEAD", "/", nil), refusedBy(api.KindFlow)))
	assert.Zero(t, w.Body.Len())
	assert.Equal(t, 429, w.Code)
	w = httptest.NewRecorder()
	assert.True(t, refusal.Write(w, httptest.NewRequest("GET", "/", nil), errors.Join(refusedBy(api.KindFlow), context.Canceled)))
	assert.Equal(t, refusal.StatusClientGone, w.Code)
	assert.Zero(t, w.Body.Len(), "nobody is there")
}

type heard []error

func (h *heard) Refused(err error) { *h = append(*h, err) }

// A listener gets the refusals that are written below it.
func TestTell(t *testing.T) {
	var h heard
	r := httptest.NewRequest("GET", "/", nil)
	refusal.Tell(r.Context(), io.EOF) // nobody listens
	err := refusedBy(api.KindBreaker)
	refusal.Write(httptest.NewRecorder(), r.WithContext(refusal.Listen(r.Context(), &h)), err)
	assert.Equal(t, heard{err}, h)
}

// A custom slot chooses the status; gRPC uses the code with the same meaning.
func TestStatusOfASlot(t *testing.T) {
	for status, want := range map[int]struct {
		http     int
		code     refusal.Code
		pushback string
	}{
		0: {503, 14, ""}, 200: {503, 14, ""}, 600: {503, 14, ""}, -1: {503, 14, ""},
		400: {400, 3, "-1"}, 401: {401, 16, "-1"}, 403: {403, 7, "-1"}, 404: {404, 5, "-1"}, 409: {409, 10, ""}, 418: {418, 9, "-1"},
		429: {429, 8, ""}, 451: {451, 9, "-1"}, 500: {500, 13, ""}, 501: {501, 12, ""}, 502: {502, 14, ""}, 503: {503, 14, ""}, 504: {504, 4, ""},
	} {
		err := &api.BlockError{Kind: api.KindCustom, Resource: "orders", Rule: "suspended", Status: status}
		r := refusal.Of(err)
		assert.Equal(t, want.http, r.HTTPStatus(), status)
		assert.Equal(t, want.code, r.GRPC().Code, status)
		assert.Equal(t, want.pushback, r.GRPC().Pushback, status)
		w := httptest.NewRecorder()
		refusal.Write(w, httptest.NewRequest("GET", "/", nil), err)
		assert.Equal(t, want.http, w.Code)
		assert.NotContains(t, w.Body.String(), "suspended")
	}
}

// A rule chooses the status and the body of its refusals. Retry-After stays where a retry can help.
func TestResponseOfARule(t *testing.T) {
	for _, tt := range []struct {
		response    api.Response
		status      int
		code        refusal.Code
		body        string
		contentType string
		after       string
	}{
		{api.Response{}, 429, refusal.ResourceExhausted, `{"type":`, refusal.ProblemType, "1"},
		{api.Response{Status: 503}, 503, refusal.Unavailable, `{"type":`, refusal.ProblemType, "1"},
		{api.Response{Status: 402, Body: "pay"}, 402, 9, "pay", "text/plain; charset=utf-8", ""},
		{api.Response{Body: ` {"error": "busy"}`}, 429, refusal.ResourceExhausted, ` {"error": "busy"}`, "application/json", "1"},
		{api.Response{Body: "[]"}, 429, refusal.ResourceExhausted, "[]", "application/json", "1"},
	} {
		g, err := api.New(api.Config{Clock: api.NewManualClock(time.Unix(1_700_000_000, 0))})
		require.NoError(t, err)
		require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 1, Interval: 500 * time.Millisecond, Refusal: tt.response}}}))
		e, err := g.Entry(t.Context(), "orders")
		require.NoError(t, err)
		e.Exit()
		_, err = g.Entry(t.Context(), "orders")
		w := httptest.NewRecorder()
		require.True(t, refusal.Write(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), err))
		assert.Equal(t, tt.status, w.Code)
		assert.True(t, strings.HasPrefix(w.Body.String(), tt.body), w.Body)
		assert.Equal(t, tt.contentType, w.Header().Get("Content-Type"))
		assert.Equal(t, tt.after, w.Header().Get("Retry-After"))
		assert.Equal(t, tt.code, refusal.Of(err).GRPC().Code)
		waited := errors.Join(err, context.DeadlineExceeded)
		assert.Contains(t, string(refusal.Of(waited).Problem()), `"status":503`)
		body, _ := refusal.Of(waited).Body()
		assert.Contains(t, string(body), `"status":503`, "the caller gave up, the rule refused nothing")
		g.Close()
	}
}
