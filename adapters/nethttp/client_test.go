package nethttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules/gateway"
)

// comes returns a request from a peer, with the given X-Forwarded-For lines.
func comes(peer string, forwarded ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for _, line := range forwarded {
		r.Header.Add("X-Forwarded-For", line)
	}
	return r
}

// An address is found in each form that servers and proxies write, and a forged header has no
// effect.
func TestClientsInEveryForm(t *testing.T) {
	inside := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::ffff:172.16.0.0/108")}
	tcp := nethttp.ClientIP(inside...)
	unix := nethttp.Proxies{Networks: inside, UnixSocket: true}.ClientIP()
	for _, tt := range []struct {
		name string
		of   nethttp.Value
		r    *http.Request
		want string
	}{
		{"a peer without a port", tcp, comes("203.0.113.7", "9.9.9.9"), "203.0.113.7"},
		{"six without a port", tcp, comes("2001:db8::1", "9.9.9.9"), "2001:db8::1"},
		{"in brackets alone", tcp, comes("[2001:db8::1]", "9.9.9.9"), "2001:db8::1"},
		{"with a zone", tcp, comes("[fe80::1%eth0]:80"), "fe80::1"},
		{"a zone without a port", tcp, comes("fe80::1%eth0"), "fe80::1"},
		{"mapped without a port", tcp, comes("::ffff:203.0.113.7"), "203.0.113.7"},

		{"a proxy without a port", tcp, comes("10.0.0.1", "203.0.113.7"), "203.0.113.7"},
		{"a mapped proxy", tcp, comes("[::ffff:10.0.0.1]:80", "203.0.113.7"), "203.0.113.7"},
		{"a proxy of a mapped network", tcp, comes("172.16.0.1:80", "203.0.113.7"), "203.0.113.7"},
		{"a proxy in six", tcp, comes("[fd00::1]:80", "203.0.113.7"), "203.0.113.7"},
		{"forwarded with a port", tcp, comes("10.0.0.1:1", "203.0.113.7:4711"), "203.0.113.7"},
		{"forwarded in six", tcp, comes("10.0.0.1:1", "2001:db8::1"), "2001:db8::1"},
		{"forwarded in brackets", tcp, comes("10.0.0.1:1", "[2001:db8::1]"), "2001:db8::1"},
		{"forwarded in brackets with a port", tcp, comes("10.0.0.1:1", "[2001:db8::1]:443"), "2001:db8::1"},
		{"forwarded mapped", tcp, comes("10.0.0.1:1", "::ffff:203.0.113.7"), "203.0.113.7"},
		{"two proxies with ports", tcp, comes("10.0.0.1:1", "203.0.113.7:1, 10.9.9.9:2"), "203.0.113.7"},
		{"two lines with ports", tcp, comes("10.0.0.1:1", "203.0.113.7:1", "10.9.9.9:2, [fd00::2]:3"), "203.0.113.7"},
		{"all of them proxies", tcp, comes("10.0.0.1:1", "10.1.1.1:5"), "10.1.1.1"},

		{"a forger", tcp, comes("203.0.113.7", "1.1.1.1"), "203.0.113.7"},
		{"a forger in front of a proxy", tcp, comes("10.0.0.1:1", "1.1.1.1:80, 203.0.113.7:4711"), "203.0.113.7"},
		{"a forger with a line", tcp, comes("10.0.0.1:1", "1.1.1.1", "203.0.113.7:4711"), "203.0.113.7"},
		{"a forger of a proxy", tcp, comes("10.0.0.1:1", "1.1.1.1, 10.1.1.1, 203.0.113.7"), "203.0.113.7"},
		{"a forger of the end", tcp, comes("10.0.0.1:1", "1.1.1.1, "), "10.0.0.1"},
		{"nonsense", tcp, comes("10.0.0.1:1", "1.1.1.1, nonsense"), "10.0.0.1"},

		{"a socket that nobody trusts", tcp, comes("@", "203.0.113.7"), ""},
		{"a nameless socket that nobody trusts", tcp, comes("", "203.0.113.7"), ""},
		{"a socket", unix, comes("@", "203.0.113.7"), "203.0.113.7"},
		{"a nameless socket", unix, comes("", "203.0.113.7:4711"), "203.0.113.7"},
		{"a socket with a name", unix, comes("@nginx", "[2001:db8::1]:1"), "2001:db8::1"},
		{"a socket with a path", unix, comes("/run/nginx.sock", "203.0.113.7"), "203.0.113.7"},
		{"a socket and a proxy", unix, comes("@", "203.0.113.7, 10.0.0.1"), "203.0.113.7"},
		{"a socket behind a proxy", unix, comes("10.0.0.1:1", "203.0.113.7, unix:"), "203.0.113.7"},
		{"a forger before a socket", unix, comes("@", "1.1.1.1, 203.0.113.7"), "203.0.113.7"},
		{"a forger of a socket", unix, comes("@", "1.1.1.1, @, 203.0.113.7"), "203.0.113.7"},
		{"a forger of an end before a socket", unix, comes("@", "1.1.1.1, "), ""},
		{"a socket that says nothing", unix, comes("@"), ""},
		{"nonsense from a socket", unix, comes("@", "1.1.1.1, nonsense"), ""},
		{"a peer that is not a socket", unix, comes("203.0.113.7:80", "1.1.1.1"), "203.0.113.7"},
		{"neither address nor socket", unix, comes("nonsense", "1.1.1.1"), ""},
		{"neither address nor socket, with a header", unix, comes("client-17", "203.0.113.7"), ""},
	} {
		assert.Equal(t, tt.want, tt.of(tt.r), tt.name)
	}
}

// A header is trusted from the same peers.
func TestTrustedHeaderInEveryForm(t *testing.T) {
	inside := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:172.16.0.0/108")}
	tcp := nethttp.TrustedHeader("X-User", inside...)
	unix := nethttp.Proxies{Networks: inside, UnixSocket: true}.Header("X-User")
	for peer, trusted := range map[string][2]bool{
		"10.0.0.1:80":          {true, true},
		"10.0.0.1":             {true, true},
		"[::ffff:10.0.0.1]":    {true, true},
		"[::ffff:10.0.0.1]:80": {true, true},
		"172.16.0.1:80":        {true, true},
		"203.0.113.7":          {},
		"2001:db8::1":          {},
		"@":                    {false, true},
		"":                     {false, true},
		"/run/nginx.sock":      {false, true},
		"nonsense":             {},
	} {
		r := comes(peer)
		r.Header["X-User"] = []string{"forged", "ann"} // as left by a proxy that appends a line
		want := map[bool]string{true: "ann"}
		assert.Equal(t, want[trusted[0]], tcp(r), "%q", peer)
		assert.Equal(t, want[trusted[1]], unix(r), "%q", peer)
	}
}

// A peer is a Unix socket only if the server listens on one: middlewares write header values into
// RemoteAddr.
func TestUnixSocketOfAServer(t *testing.T) {
	of := nethttp.Proxies{UnixSocket: true}.ClientIP()
	for _, peer := range []string{"", "@", "/run/app.sock"} {
		for network, want := range map[net.Addr]string{
			&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}:   "",
			&net.UnixAddr{Name: "/run/app.sock", Net: "unix"}:   "203.0.113.7",
			&net.UnixAddr{Name: "@app.sock", Net: "unixpacket"}: "203.0.113.7",
		} {
			r := comes(peer, "203.0.113.7")
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, network))
			assert.Equal(t, want, of(r), "%q on %v", peer, network)
		}
	}

	at := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", at)
	require.NoError(t, err)
	got := make(chan string, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- of(r) })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at)
	}}}
	defer c.CloseIdleConnections()
	r, err := http.NewRequest("GET", "http://app/", nil)
	require.NoError(t, err)
	r.Header.Set("X-Forwarded-For", "1.1.1.1, 203.0.113.7:4711")
	resp, err := c.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, "203.0.113.7", <-got)
}

// Two clients behind a proxy have separate limits, regardless of the form of their addresses, and
// no header evades them.
func TestLimitOfEachClient(t *testing.T) {
	inside := netip.MustParsePrefix("10.0.0.0/8")
	g := newGuard(t, api.RuleSet{
		Hotspot: []hotspot.Rule{{Resource: "GET /", Param: "ip", Threshold: 1}},
		Groups:  []gateway.Group{{ID: "all", Paths: []gateway.Path{{Path: "/"}}}},
		Gateway: []gateway.Rule{{Group: "all", Param: gateway.ClientIP, Threshold: 1}},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	clients := nethttp.Proxies{Networks: []netip.Prefix{inside}, UnixSocket: true}.ClientIP()
	for name, h := range map[string]http.Handler{
		"a handler": nethttp.Handler(mux, nethttp.On(g), nethttp.Param("ip", clients)),
		"a gateway": nethttp.Gateway(mux, nil, nethttp.On(g), nethttp.GatewayClients(clients)),
	} {
		status := func(r *http.Request) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		assert.Equal(t, 200, status(comes("203.0.113.7")), name)
		for _, r := range []*http.Request{
			comes("203.0.113.7:80"), comes("::ffff:203.0.113.7"), comes("203.0.113.7", "1.1.1.1"),
			comes("10.0.0.1", "203.0.113.7:1"), comes("10.0.0.1:7", "1.1.1.1, 203.0.113.7:2"), comes("@", "1.1.1.2, 203.0.113.7"),
		} {
			assert.Equal(t, 429, status(r), "%s: %s of %q", name, r.RemoteAddr, r.Header)
		}
		assert.Equal(t, 200, status(comes("@", "203.0.113.8:1")), name)
		assert.Equal(t, 429, status(comes("10.0.0.1", "203.0.113.8:1")), name)
	}
}

// Omitting a header, a parameter or a cookie gains nothing if the rule's missing field covers it.
func TestLimitOfClientsThatSayNothing(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	for _, param := range []gateway.Param{gateway.ClientIP, gateway.Host, gateway.Header, gateway.Query, gateway.Cookie} {
		for missing, want := range map[hotspot.Missing][]int{
			hotspot.MissingNone: {200, 200}, hotspot.MissingUnlimited: {200, 200},
			hotspot.MissingShared: {200, 429}, hotspot.MissingRefuse: {429, 429},
		} {
			rule := gateway.Rule{Group: "all", Param: param, Threshold: 1, Missing: missing}
			if param > gateway.Host {
				rule.Name = "x"
			}
			g := newGuard(t, api.RuleSet{
				Groups:  []gateway.Group{{ID: "all", Paths: []gateway.Path{{Path: "/"}}}},
				Gateway: []gateway.Rule{rule},
			})
			h := nethttp.Gateway(mux, nil, nethttp.On(g))
			for _, code := range want {
				r := comes("@")
				r.Host = ""
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				assert.Equal(t, code, w.Code, "%v, %v", param, missing)
			}
		}
	}
}
