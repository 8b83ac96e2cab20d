package nethttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// metered returns a guard with a limit on tokens, options that make each request cost 100 of them and
// give them back, and a function that returns the tokens used. No settlement may be logged as a mistake.
func metered(t *testing.T) (*api.Guard, []nethttp.Option, func() int64) {
	t.Helper()
	log := new(strings.Builder)
	g, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NotContains(t, log.String(), "Settle")
		assert.NoError(t, g.Close())
	})
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{
		{Resource: "chat", Unit: "tokens", Threshold: 1000, Interval: time.Hour},
		{Resource: "nested", Threshold: 0},
	}}))
	opts := []nethttp.Option{
		nethttp.On(g), nethttp.Resource(func(*http.Request, string) string { return "chat" }), nethttp.RefundOnError("tokens"),
		nethttp.RefundOnError("rows"), nethttp.Cost("tokens", func(*http.Request) int64 { return 100 }),
	}
	return g, opts, func() int64 { return g.UnitStats("chat")[0].Total.Used() }
}

// guardKey is the key of the guard in the contexts of requests.
type guardKey struct{}

// A request gives back its estimate if it fails before its response, unless its handler has
// settled it.
func TestRefundOnError(t *testing.T) {
	settle := func(r *http.Request) { api.FromContext(r.Context()).Settle("tokens", 30) }
	for name, c := range map[string]struct {
		used  int64
		serve func(w http.ResponseWriter, r *http.Request)
	}{
		"success":       {100, ok},
		"no response":   {100, func(http.ResponseWriter, *http.Request) {}},
		"an error":      {0, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }},
		"a bad request": {0, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) }},
		"a panic":       {0, func(http.ResponseWriter, *http.Request) { panic("no") }},
		"an error that panics": {0, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusBadGateway)
			panic("no")
		}},
		"a panic after the first byte": {100, func(w http.ResponseWriter, r *http.Request) {
			ok(w, r)
			panic("no")
		}},
		"a nested refusal": {0, func(w http.ResponseWriter, r *http.Request) {
			_, err := r.Context().Value(guardKey{}).(*api.Guard).Entry(r.Context(), "nested")
			refusal.Write(w, r, err)
		}},
		"settled": {30, func(_ http.ResponseWriter, r *http.Request) { settle(r) }},
		"settled, then an error": {30, func(w http.ResponseWriter, r *http.Request) {
			settle(r)
			http.Error(w, "no", http.StatusBadGateway)
		}},
		"settled, then a panic": {30, func(_ http.ResponseWriter, r *http.Request) {
			settle(r)
			panic("no")
		}},
		"taken over, then a panic": {100, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic("can't be taken over")
			}
			_ = conn.Close()
			panic("no")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g, opts, used := metered(t)
			h := nethttp.Middleware(opts...)(http.HandlerFunc(c.serve))
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if recover() != nil {
						panic(http.ErrAbortHandler) // which the server doesn't log
					}
				}()
				h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), guardKey{}, g)))
			}))
			if resp, err := s.Client().Get(s.URL); err == nil {
				_ = resp.Body.Close()
			}
			s.Close()
			assert.Equal(t, c.used, used())
		})
	}
}

// A client's request gives back its estimate if there is no response, or one with an error.
func TestRefundOnErrorOfAClient(t *testing.T) {
	for name, c := range map[string]struct {
		used   int64
		status int
		err    error
	}{
		"success":       {100, http.StatusOK, nil},
		"a bad gateway": {0, http.StatusBadGateway, nil},
		"not found":     {0, http.StatusNotFound, nil},
		"no connection": {0, 0, errors.New("no connection")},
	} {
		t.Run(name, func(t *testing.T) {
			_, opts, used := metered(t)
			transport := nethttp.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.status, Body: http.NoBody}, c.err
			}), opts...)
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil)) //nolint:bodyclose // it has none
			assert.Equal(t, c.err, err)
			assert.Equal(t, c.used, used())
		})
	}
}
