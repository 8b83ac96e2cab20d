package nethttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// received serves a handler that answers with the header that it gets.
func received(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, word := range r.Header.Values(nethttp.CriticalityHeader) {
			_, _ = io.WriteString(w, word+";")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A client sends the level of its context, in place of a header that the request has, and changes no
// request. Without a level it sends what the program does.
func TestClientSendsTheLevel(t *testing.T) {
	s := received(t)
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	for _, opts := range [][]nethttp.Option{{nethttp.On(g)}, {nethttp.On(g), nethttp.Context("batch")}, {nethttp.On(g), nethttp.Resource(func(*http.Request, string) string { return "" })}} {
		client := &http.Client{Transport: nethttp.Transport(nil, opts...)}
		for _, tt := range []struct{ level, header, want string }{
			{"", "", ""}, {"", "own", "own;"}, {"sheddable", "", "sheddable;"}, {"criticalPlus", "own", "criticalPlus;"},
		} {
			ctx := t.Context()
			if tt.level != "" {
				var level api.Level
				require.NoError(t, level.UnmarshalText([]byte(tt.level)))
				ctx = api.WithCriticality(ctx, level)
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
			require.NoError(t, err)
			if r.Header = nil; tt.header != "" {
				r.Header = http.Header{nethttp.CriticalityHeader: {tt.header}}
			}
			resp, err := client.Do(r)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(body))
			assert.Equal(t, tt.header, r.Header.Get(nethttp.CriticalityHeader))
			_ = resp.Body.Close()
		}
	}
}

// A server behind the program's own network takes the level from there, but none above critical.
func TestServerReadsTheLevel(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		level, _ := api.CriticalityOf(r.Context())
		_, _ = io.WriteString(w, level.String())
	})
	mine := netip.MustParsePrefix("10.0.0.0/8")
	handler := nethttp.Handler(mux, nethttp.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, mine), api.Critical))
	for _, tt := range []struct{ peer, word, want string }{
		{"10.1.2.3:1", "sheddable", "sheddable"}, {"10.1.2.3:1", "criticalPlus", "critical"}, {"192.0.2.1:1", "sheddable", "critical"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = tt.peer
		r.Header.Set(nethttp.CriticalityHeader, tt.word)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		assert.Equal(t, tt.want, w.Body.String(), tt)
	}
}

// A proxy that reads levels from its own peers passes on no level that an outsider has named.
func TestProxyLaundersNoLevel(t *testing.T) {
	s := received(t)
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	defer g.Close()
	to, err := url.Parse(s.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = nethttp.Transport(nil, nethttp.On(g))
	trusted := nethttp.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, netip.MustParsePrefix("10.0.0.0/8")), api.CriticalPlus)
	h := nethttp.Middleware(nethttp.On(g), trusted)(proxy)
	for peer, want := range map[string]string{"192.0.2.1:1": "critical;", "10.1.2.3:1": "criticalPlus;"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set(nethttp.CriticalityHeader, "criticalPlus")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, want, w.Body.String(), peer)
	}
}
