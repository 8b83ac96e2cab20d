package nethttp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/race"
)

func newGuard(t testing.TB, set api.RuleSet) *api.Guard {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	require.NoError(t, g.LoadRules(set))
	return g
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

// nobody is a writer that costs nothing.
type nobody struct{ header http.Header }

func (n nobody) Header() http.Header         { return n.header }
func (n nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n nobody) WriteHeader(int)             {}

// A request that passes costs at most three allocations: the exchange with the context of nested
// calls, the request that carries it, and the mux's lookup of the pattern.
func TestAllocations(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	guarded := nethttp.Handler(mux, nethttp.On(g))
	r := httptest.NewRequest(http.MethodGet, "/orders/7", nil)
	w := nobody{make(http.Header)}
	without := testing.AllocsPerRun(200, func() { mux.ServeHTTP(w, r) })
	with := testing.AllocsPerRun(200, func() { guarded.ServeHTTP(w, r) })
	if !race.Enabled { // the race detector allocates
		assert.LessOrEqual(t, with-without, 3.0)
	}
}

// Clients choose paths and methods, yet there are at most two resources more than routes.
func TestFloodsMakeNoResources(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", ok)
	mux.HandleFunc("/any/", ok)
	h := nethttp.Handler(mux, nethttp.On(g))
	n := 100_000
	if testing.Short() || race.Enabled {
		n = 5_000
	}
	for i := range n {
		h.ServeHTTP(nobody{make(http.Header)}, &http.Request{Method: "GET", URL: &url.URL{Path: fmt.Sprintf("/users/%d", i)}})
		h.ServeHTTP(nobody{make(http.Header)}, &http.Request{Method: "GET", URL: &url.URL{Path: fmt.Sprintf("/none/%d", i)}})
		h.ServeHTTP(nobody{make(http.Header)}, &http.Request{Method: fmt.Sprintf("M%d", i), URL: &url.URL{Path: "/any/thing"}})
	}
	var names []string
	for _, n := range g.Tree().Resources {
		names = append(names, n.Name)
	}
	assert.ElementsMatch(t, []string{"GET /users/{id}", "GET __unmatched__", "_OTHER /any/"}, names)
}

func TestNames(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	for _, p := range []string{"GET /a", "/b", "POST example.com/c/{id}", "GET /files/{path...}"} {
		mux.HandleFunc(p, ok)
	}
	for _, opts := range [][]nethttp.Option{nil, {nethttp.SentinelNames()},
		{nethttp.Resource(func(r *http.Request, route string) string { return strings.TrimPrefix(route, "GET __unmatched__") })}} {
		h := nethttp.Handler(mux, append(opts, nethttp.On(g))...)
		for _, r := range []*http.Request{httptest.NewRequest("GET", "/a", nil), httptest.NewRequest("HEAD", "/a", nil),
			httptest.NewRequest("PUT", "/b", nil), httptest.NewRequest("POST", "http://example.com/c/7", nil),
			httptest.NewRequest("GET", "/files/a/b", nil), httptest.NewRequest("GET", "/none", nil)} {
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	var names []string
	for _, n := range g.Tree().Resources {
		names = append(names, fmt.Sprintf("%s %d", n.Name, n.Lifetime.Pass))
	}
	assert.ElementsMatch(t, []string{"GET /a 4", "PUT /b 2", "POST example.com/c/{id} 2", "GET /files/{path...} 2", "GET __unmatched__ 1",
		"GET:/a 2", "PUT:/b 1", "POST:example.com/c/{id} 1", "GET:/files/{path...} 1", "GET:__unmatched__ 1"}, names,
		"a request that Resource gives no name passes unguarded")
}

// For a CONNECT without the final slash, a mux returns the path instead of a pattern.
func TestConnectRedirects(t *testing.T) {
	for pattern, targets := range map[string][]string{
		"/files/{x}/":           {"/files/a", "/files/b%0A", "/files/a%2F", "/files/%20", "/files/{x}", "/files/a?q", "/files/a%2f%2f", "/files/a/"},
		"CONNECT /files/{x}/":   {"/files/a", "/files/a/"},
		"/tree/{$}":             {"/tree", "/tree/"},
		"/files/":               {"/files", "/files/", "/files/a/b"},
		"CONNECT a.test/x/{y}/": {"http://a.test/x/b", "http://a.test/x/b%2F"},
		"CONNECT x.test/x/{y}/": {"/x/b", "/x/b/", "/x/b%2F"},
		"/{x}/{y}/":             {"/%7Bx%7D/%7By%7D", "//a/b", "/a/b%2F"},
	} {
		for _, target := range targets {
			g := newGuard(t, api.RuleSet{})
			mux := http.NewServeMux()
			mux.HandleFunc(pattern, ok)
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("CONNECT " + target + " HTTP/1.1\r\nHost: x.test\r\n\r\n")))
			require.NoError(t, err)
			bare, guarded := httptest.NewRecorder(), httptest.NewRecorder()
			mux.ServeHTTP(bare, r.Clone(t.Context()))
			nethttp.Handler(mux, nethttp.On(g)).ServeHTTP(guarded, r)
			assert.Equal(t, bare, guarded, "%s %s", pattern, target)
			own, path, found := strings.Cut(pattern, " ")
			if !found {
				own, path = "CONNECT", pattern
			}
			for _, n := range g.Tree().Resources {
				assert.Contains(t, []string{own + " " + path, "CONNECT __unmatched__"}, n.Name, target)
			}
			if guarded.Code == http.StatusTemporaryRedirect {
				assert.Equal(t, pattern, r.Pattern, "for loggers around the guard")
			}
		}
	}
}

// Path values are known before the mux has routed.
func TestPathValues(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /u/{id}/x/{rest...}", ok)
	var got string
	h := nethttp.Handler(mux, nethttp.On(g), nethttp.WithOptions(func(r *http.Request) []api.Option {
		got = nethttp.PathValue("id")(r) + "|" + nethttp.PathValue("rest")(r)
		return nil
	}))
	r := httptest.NewRequest("GET", "/u/a%2Fb/x/y/z", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	assert.Equal(t, "a/b|y/z", got)
	assert.Equal(t, "GET /u/{id}/x/{rest...}", r.Pattern, "for loggers around the guard")
}

// A mux is asked once for a pattern without wildcards, and works as usual: it redirects, lists the
// methods, refuses "*", and forgets the path values of a mux around it.
func TestHandlerServesAsTheMuxDoes(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "a %s %q %q", r.Pattern, r.PathValue("id"), r.PathValue("outer"))
	})
	mux.HandleFunc("/tree/{$}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "tree ", r.Pattern) })
	mux.HandleFunc("/u/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "u %s %q %q", r.Pattern, r.PathValue("id"), r.PathValue("outer"))
	})
	around := func(h http.Handler) http.Handler {
		outer := http.NewServeMux()
		outer.Handle("/{outer}", h)
		outer.Handle("/u/{outer}", h)
		return outer
	}
	guarded := nethttp.Handler(mux, nethttp.On(newGuard(t, api.RuleSet{})))
	for _, target := range []string{"GET /a", "HEAD /a", "POST /a", "GET /tree/", "GET /tree", "GET /u/7", "GET /none", "GET //a", "OPTIONS *", "GET *", "CONNECT /a"} {
		for name, wrap := range map[string]func(http.Handler) http.Handler{"alone": func(h http.Handler) http.Handler { return h }, "within": around} {
			answer := func(h http.Handler) string {
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(target + " HTTP/1.1\r\nHost: x\r\n\r\n")))
				require.NoError(t, err)
				w := httptest.NewRecorder()
				wrap(h).ServeHTTP(w, r)
				return fmt.Sprint(w.Code, w.Header(), w.Body)
			}
			assert.Equal(t, answer(mux), answer(guarded), "%s %s", name, target)
		}
	}
}

func TestValues(t *testing.T) {
	inside := netip.MustParsePrefix("10.0.0.0/8")
	request := func(remote string, header ...string) *http.Request {
		r := httptest.NewRequest("GET", "http://shop.test/?q=1&q=2", nil)
		r.RemoteAddr = remote
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		return r
	}
	for name, c := range map[string]struct {
		value nethttp.Value
		r     *http.Request
		want  string
	}{
		"header":                  {nethttp.Header("x-user"), request("1.1.1.1:1", "X-User", "ann"), "ann"},
		"no header":               {nethttp.Header("x-user"), request("1.1.1.1:1"), ""},
		"query":                   {nethttp.Query("q"), request("1.1.1.1:1"), "1"},
		"cookie":                  {nethttp.Cookie("c"), request("1.1.1.1:1", "Cookie", "c=7"), "7"},
		"no cookie":               {nethttp.Cookie("d"), request("1.1.1.1:1", "Cookie", "c=7"), ""},
		"host":                    {nethttp.Host(), request("1.1.1.1:1"), "shop.test"},
		"ip":                      {nethttp.ClientIP(), request("1.1.1.1:1", "X-Forwarded-For", "9.9.9.9"), "1.1.1.1"},
		"ip behind a proxy":       {nethttp.ClientIP(inside), request("10.0.0.1:1", "X-Forwarded-For", "6.6.6.6, 9.9.9.9, 10.0.0.7"), "9.9.9.9"},
		"ip of two headers":       {nethttp.ClientIP(inside), request("10.0.0.1:1", "X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "9.9.9.9"), "9.9.9.9"},
		"ip of nonsense":          {nethttp.ClientIP(inside), request("10.0.0.1:1", "X-Forwarded-For", "9.9.9.9, unknown"), "10.0.0.1"},
		"ip of a forger":          {nethttp.ClientIP(inside), request("8.8.8.8:1", "X-Forwarded-For", "9.9.9.9"), "8.8.8.8"},
		"ip in six":               {nethttp.ClientIP(), request("[::ffff:1.2.3.4]:1"), "1.2.3.4"},
		"ip of a socket":          {nethttp.ClientIP(), request("@"), ""},
		"trusted header":          {nethttp.TrustedHeader("X-User", inside), request("10.1.1.1:1", "X-User", "ann"), "ann"},
		"header of a forger":      {nethttp.TrustedHeader("X-User", inside), request("8.8.8.8:1", "X-User", "ann"), ""},
		"no TLS":                  {nethttp.VerifiedPeer(), request("1.1.1.1:1"), ""},
		"a peer that is verified": {nethttp.VerifiedPeer(), certified(x509.Certificate{Subject: pkix.Name{CommonName: "ann"}}), "ann"},
		"a peer with a name":      {nethttp.VerifiedPeer(), certified(x509.Certificate{DNSNames: []string{"a.test"}, Subject: pkix.Name{CommonName: "ann"}}), "a.test"},
		"a peer with a SPIFFE ID": {nethttp.VerifiedPeer(), certified(x509.Certificate{DNSNames: []string{"a.test"},
			URIs: []*url.URL{{Scheme: "spiffe", Host: "td", Path: "/a"}}}), "spiffe://td/a"},
	} {
		assert.Equal(t, c.want, c.value(c.r), name)
	}
}

func certified(c x509.Certificate) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&c}}}
	return r
}

// The handler's writer has the same interfaces as without a guard, in HTTP/1 and HTTP/2.
func TestWriters(t *testing.T) {
	can := func(w http.ResponseWriter) string {
		var text strings.Builder
		_, flush := w.(http.Flusher)
		_, hijack := w.(http.Hijacker)
		_, from := w.(io.ReaderFrom)
		_, push := w.(http.Pusher)
		deadline := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)) == nil
		fmt.Fprint(&text, flush, hijack, from, push, deadline)
		return text.String()
	}
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, can(w)) })
	said := make(map[string]string)
	for _, two := range []bool{false, true} {
		for name, h := range map[string]http.Handler{"bare": mux, "guarded": nethttp.Handler(mux, nethttp.On(g))} {
			s := httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = two
			s.StartTLS()
			resp, err := s.Client().Get(s.URL)
			require.NoError(t, err)
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			s.Close()
			said[name] += fmt.Sprintf("HTTP/%d: %s; ", resp.ProtoMajor, text)
		}
	}
	assert.Equal(t, said["bare"], said["guarded"])
	assert.Contains(t, said["bare"], "HTTP/2")
}

func transported(t *testing.T, set api.RuleSet, h http.HandlerFunc, opts ...nethttp.Option) (*api.Guard, *http.Client, string) {
	g := newGuard(t, set)
	url := conformance.Serve(t, h)
	inner := &http.Transport{}
	c := &http.Client{Transport: nethttp.Transport(inner, append(opts, nethttp.On(g),
		nethttp.Resource(func(*http.Request, string) string { return "remote" }))...)}
	t.Cleanup(c.CloseIdleConnections)
	return g, c, url
}

// A request is in flight until its body has been read or closed.
func TestTransportEndsWithTheBody(t *testing.T) {
	g, c, url := transported(t, api.RuleSet{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<16)) })
	inFlight := func() int64 { n, _ := g.Tree().Resource("remote"); return n.InFlight }
	resp, err := c.Get(url)
	require.NoError(t, err)
	assert.EqualValues(t, 1, inFlight())
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	assert.Zero(t, inFlight(), "read")
	resp.Body.Close()
	resp, err = c.Get(url)
	require.NoError(t, err)
	assert.EqualValues(t, 1, inFlight())
	resp.Body.Close()
	assert.Zero(t, inFlight(), "closed")
	resp, err = c.Head(url)
	require.NoError(t, err)
	assert.Zero(t, inFlight(), "no body")
	resp.Body.Close()
}

// closed is a body that records whether it was closed.
type closed struct {
	io.Reader
	is bool
}

func (c *closed) Close() error { c.is = true; return nil }

// A refusal is found below the client's error, and the request's body is closed.
func TestTransportRefuses(t *testing.T) {
	g, c, url := transported(t, api.RuleSet{Flow: []flow.Rule{{Resource: "remote", Threshold: 0}}}, ok)
	body := &closed{Reader: strings.NewReader("abc")}
	_, err := c.Post(url, "text/plain", body)
	require.ErrorIs(t, err, api.ErrBlocked)
	assert.Equal(t, api.KindFlow, api.KindOf(err))
	assert.True(t, body.is)
	n, _ := g.Tree().Resource("remote")
	assert.EqualValues(t, 1, n.Lifetime.Block)
}

func TestTransportFailures(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		status int
		abort  bool
		failed int64
	}{
		"200": {t.Context(), 200, false, 0}, "404": {t.Context(), 404, false, 0}, "429": {t.Context(), 429, false, 1},
		"500": {t.Context(), 500, false, 1}, "abort": {t.Context(), 0, true, 1}, "canceled": {canceled, 200, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, client, url := transported(t, api.RuleSet{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.abort {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.status)
			})
			r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, url, bytes.NewReader([]byte("x")))
			require.NoError(t, err)
			if resp, err := client.Do(r); err == nil {
				resp.Body.Close()
			}
			n, _ := g.Tree().Resource("remote")
			assert.Equal(t, c.failed, n.Lifetime.Exception)
			assert.Zero(t, n.InFlight)
		})
	}
}

// A body that breaks off is a failure.
func TestTransportBodyBreaksOff(t *testing.T) {
	g, c, url := transported(t, api.RuleSet{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("x"))
	})
	resp, err := c.Get(url)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	resp.Body.Close()
	n, _ := g.Tree().Resource("remote")
	assert.EqualValues(t, 1, n.Lifetime.Exception)
	assert.Zero(t, n.InFlight)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type readWriteCloser struct {
	io.Reader
	io.Writer
	io.Closer
}

// The body of an upgraded protocol can be written to, but others can't; a transport that panics
// leaks nothing.
func TestTransportKeepsWhatBodiesCan(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	var resp *http.Response
	tr := nethttp.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
		if resp == nil {
			panic("no response")
		}
		return resp, nil
	}), nethttp.On(g))
	r := httptest.NewRequest("GET", "http://a.test/x", nil)
	for _, duplex := range []bool{true, false} {
		var written bytes.Buffer
		plain := io.NopCloser(strings.NewReader("x"))
		resp = &http.Response{StatusCode: 101, Body: plain}
		if duplex {
			resp.Body = readWriteCloser{plain, &written, plain}
		}
		got, err := tr.RoundTrip(r)
		require.NoError(t, err)
		w, can := got.Body.(io.ReadWriteCloser)
		assert.Equal(t, duplex, can)
		if can {
			_, err = w.Write([]byte("hello"))
			require.NoError(t, err)
			assert.Equal(t, "hello", written.String())
		}
		require.NoError(t, got.Body.Close())
	}
	resp = nil
	assert.PanicsWithValue(t, "no response", func() { _, _ = tr.RoundTrip(r) })
	n, found := g.Tree().Resource("GET a.test")
	require.True(t, found)
	assert.EqualValues(t, 2, n.Lifetime.LongLived)
	assert.EqualValues(t, 1, n.Lifetime.Exception)
	assert.Zero(t, n.InFlight)
}

// All spellings of a host are one resource: lower case, no final dot, no default port.
func TestTransportSpellsHosts(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	tr := nethttp.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}), nethttp.On(g))
	for _, target := range []string{
		"http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://localhost:80/", "https://LocalHost.:443/",
		"http://localhost:8080/", "http://LOCALHOST:08080/", "http://localhost:443/", "https://[2001:DB8:0::1]:443/",
	} {
		at, err := url.Parse(target)
		require.NoError(t, err)
		_, err = tr.RoundTrip(&http.Request{Method: "GET", URL: at})
		require.NoError(t, err)
		assert.Equal(t, target, at.String(), "the request stays as it is")
	}
	var names []string
	for _, n := range g.Tree().Resources {
		names = append(names, fmt.Sprint(n.Name, " ", n.Lifetime.Pass))
	}
	assert.ElementsMatch(t, []string{"GET localhost 5", "GET localhost:8080 2", "GET localhost:443 1", "GET [2001:db8::1] 1"}, names)
}

// A host's breaker is open for all methods.
func TestPerHost(t *testing.T) {
	var asked []string
	for _, opts := range [][]nethttp.Option{{nethttp.PerHost()}, {nethttp.PerHost(), nethttp.SentinelNames()}, {nethttp.PerHost(), nethttp.Resource(func(_ *http.Request, name string) string {
		asked = append(asked, name)
		return name
	})}} {
		g := newGuard(t, api.RuleSet{Breaker: []breaker.Rule{{Resource: "a.test", Threshold: 0.5, MinCalls: 1, Recovery: time.Hour}}})
		opts = append(opts, nethttp.On(g))
		tr := nethttp.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 500, Body: http.NoBody}, nil
		}), opts...)
		_, err := tr.RoundTrip(httptest.NewRequest("GET", "http://A.test:80/x", nil))
		require.NoError(t, err)
		_, err = tr.RoundTrip(httptest.NewRequest("POST", "http://a.test/y", nil))
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Len(t, g.Tree().Resources, 1)

		mux := http.NewServeMux()
		mux.HandleFunc("/x", ok)
		nethttp.Handler(mux, opts...).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/x", nil))
		assert.Len(t, g.Tree().Resources, 2, "a server's resources have methods")
	}
	assert.Equal(t, []string{"a.test", "a.test", "PUT /x"}, asked)
}

var errGone = errors.New("gone")

// A custom function can respond to refusals.
func TestRefuse(t *testing.T) {
	g := newGuard(t, api.RuleSet{Flow: []flow.Rule{{Resource: "orders", Threshold: 0}}})
	h := nethttp.Middleware(nethttp.On(g), nethttp.Resource(func(*http.Request, string) string { return "orders" }),
		nethttp.Refuse(func(w http.ResponseWriter, _ *http.Request, err error) {
			assert.ErrorIs(t, err, api.ErrBlocked)
			http.Error(w, errGone.Error(), http.StatusGone)
		}))(http.HandlerFunc(ok))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	assert.Equal(t, http.StatusGone, w.Code)
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

// Inside a TimeoutHandler the call lasts as long as its handler, even after the client has received
// the timeout.
func TestInsideOfATimeoutHandler(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	arrived, release, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	guarded := nethttp.Middleware(nethttp.On(g), nethttp.Resource(func(*http.Request, string) string { return "slow" }))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	h := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		guarded.ServeHTTP(w, r)
	}), time.Millisecond, "too slow")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	<-arrived
	n, _ := g.Tree().Resource("slow")
	assert.EqualValues(t, 1, n.InFlight)
	close(release)
	<-left
	n, _ = g.Tree().Resource("slow")
	assert.Zero(t, n.InFlight)
}

// A status below 200 precedes the final status, which counts.
func TestEarlyResponses(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusInternalServerError)
	})
	resp, err := http.Get(conformance.Serve(t, nethttp.Handler(mux, nethttp.On(g))))
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	n, _ := g.Tree().Resource("GET /")
	assert.EqualValues(t, 1, n.Lifetime.Exception)
}

// A request that its handler passes on within the mux is one call.
func TestForwardsEnterOnce(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /new/{id}", ok)
	mux.HandleFunc("GET /old/{id}", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/new/" + r.PathValue("id")
		mux.ServeHTTP(w, r)
	})
	w := httptest.NewRecorder()
	nethttp.Handler(mux, nethttp.On(g)).ServeHTTP(w, httptest.NewRequest("GET", "/old/7", nil))
	assert.Equal(t, "ok", w.Body.String())
	var names []string
	for _, n := range g.Tree().Resources {
		names = append(names, fmt.Sprint(n.Name, " ", n.Lifetime.Pass))
	}
	assert.Equal(t, []string{"GET /old/{id} 1"}, names)
}
