package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// declared holds the access of each route. A route that is missing here, or only here, fails the
// matrix.
var declared = map[string]access{
	"GET /{$}":                  open,
	"GET /console.js":           open,
	"GET /console.css":          open,
	"GET /uplot.js":             open,
	"GET /uplot.css":            open,
	"GET /uplot.LICENSE":        open,
	"GET /api/tree":             reads,
	"GET /api/resources":        reads,
	"GET /api/resources/{name}": reads,
	"GET /api/resource":         reads,
	"GET /api/rules":            reads,
	"GET /api/breakers":         reads,
	"GET /api/explain":          reads,
	"GET /api/events":           reads,
	"POST /api/rules/diff":      changes,
	"POST /api/rules/apply":     changes,
}

var (
	// hosts are names under which the console is or isn't served.
	hosts = map[string]bool{
		"127.0.0.1:8719": true, "[::1]:8719": true, "console.example:80": true,
		"evil.example:8719": false, "": false, "localhost.": false,
	}
	sites = []struct {
		name, origin, fetch string
		allowed             bool
	}{
		{"no browser", "", "", true},
		{"typed", "", "none", true},
		{"same origin", "SELF", "same-origin", true},
		{"same origin, old browser", "SELF", "", true},
		{"same site", "http://127.0.0.1:3000", "same-site", false},
		{"cross site", "https://evil.example", "cross-site", false},
		{"cross site, no origin", "", "cross-site", false},
		{"cross site, old browser", "https://evil.example", "", false},
		{"sandboxed", "null", "", false},
		{"rebound", "http://evil.example:8719", "", false},
	}
	tokens  = map[string]string{"no": "", "wrong": "no-such-token-as-this", "read": readToken, "write": writeToken, "both": readToken + writeToken}
	methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get"}
)

// The test tries every route × method × token × Host × Origin, over the routes of the mux, for each
// configuration of tokens: exactly the declared access is granted, and only POST changes anything.
func TestBearer(t *testing.T) {
	l := newLab(t, Config{ReadToken: readToken}, api.RuleSet{})
	for header, want := range map[string]int{
		"Bearer " + readToken: 200, "bearer " + readToken: 200, "BEARER  " + readToken: 200,
		readToken: 401, "Basic " + readToken: 401, "Bearer": 401, "Bearer " + readToken + "x": 401, "": 401, "Bearer\t" + readToken: 401,
	} {
		r := request("GET", "/api/rules", "")
		r.Header.Set("Authorization", header)
		assert.Equal(t, want, l.do(r).Code, "%q", header)
	}
}

// Clients that don't read hold a bounded number of bytes in total, whatever they request, and small
// responses still have room.
func TestUnreadAnswersAreBounded(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{})
	for i := range 3_000 {
		l.call(1, fmt.Sprintf("%s%d", strings.Repeat("r", 900), i))
	}
	var size int
	release := make(chan struct{})
	stalled := make(chan int, maxRequests)
	const asked = maxRequests
	size = l.do(request("GET", "/api/resources?limit=10000", "")).Body.Len()
	require.Greater(t, asked*size, maxHeld, "or nothing is shown")
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			w := &stalling{ResponseRecorder: httptest.NewRecorder(), stalled: stalled, release: release, least: size / 2}
			l.handler.ServeHTTP(w, request("GET", "/api/resources?limit=10000", ""))
			if w.Code == http.StatusServiceUnavailable {
				stalled <- 0
			}
		})
	}
	held, refused := 0, 0
	for range asked {
		if n := <-stalled; n > 0 {
			held += n
		} else {
			refused++
		}
	}
	assert.LessOrEqual(t, held, maxHeld)
	assert.Positive(t, refused)
	assert.Greater(t, held, maxHeld/2)
	close(release)
	all.Wait()
	assert.Equal(t, http.StatusOK, l.do(request("GET", "/api/resources?limit=10000", "")).Code)
	assert.Zero(t, l.console.unread.held)
}

// stalling is a client that doesn't read a large response.
type stalling struct {
	*httptest.ResponseRecorder
	stalled chan<- int
	release <-chan struct{}
	least   int
}

func (s *stalling) Write(b []byte) (int, error) {
	if len(b) >= s.least {
		s.stalled <- len(b)
		<-s.release
	}
	return s.ResponseRecorder.Write(b)
}

func TestSecurityMatrix(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{ReadToken: readToken},
		{WriteToken: writeToken},
		{ReadToken: readToken, WriteToken: writeToken},
		{WriteToken: writeToken, WriteRules: true},
		{ReadToken: readToken, WriteToken: writeToken, WriteRules: true},
	} {
		if testing.Short() && cfg.WriteToken != "" != (cfg.ReadToken != "") {
			continue
		}
		cfg.Hosts = []string{"console.example"}
		t.Run(fmt.Sprintf("read %t write %t rules %t", cfg.ReadToken != "", cfg.WriteToken != "", cfg.WriteRules), func(t *testing.T) {
			l := newLab(t, cfg, api.RuleSet{Flow: []flow.Rule{{ID: "a", Resource: "a", Threshold: 1}}})
			cases := 0
			routes := l.console.routes()
			known := make(map[string]access)
			byPath := make(map[string]map[string]access)
			for _, r := range routes {
				known[r.method+" "+r.pattern] = r.access
				if byPath[r.pattern] == nil {
					byPath[r.pattern] = make(map[string]access)
				}
				byPath[r.pattern][r.method] = r.access
			}
			require.Equal(t, declared, known)
			set := l.guard.Rules()
			for pattern, served := range byPath {
				path := strings.NewReplacer("{$}", "", "{name}", "a").Replace(pattern)
				if path == eventsPath { // its response has no end
					l.console.config.Streams = 0
				} else {
					l.console.config.Streams = 1
				}
				for _, method := range methods {
					for tokenName, token := range tokens {
						for host, hostOK := range hosts {
							for _, site := range sites {
								body := ""
								if method == "POST" {
									body = `{"rules":{"flow":[{"id":"a","resource":"a","threshold":2}]},"proof":"none"}`
								}
								r := request(method, path, body)
								r.Host = host
								if token != "" {
									with(token)(r)
								}
								if site.origin == "SELF" {
									r.Header.Set("Origin", "http://"+host)
								} else if site.origin != "" {
									r.Header.Set("Origin", site.origin)
								}
								if site.fetch != "" {
									r.Header.Set("Sec-Fetch-Site", site.fetch)
								}
								access, ok := served[map[string]string{"HEAD": "GET"}[method]+strings.TrimPrefix(method, "HEAD")]
								want := 200
								switch {
								case !hostOK:
									want = http.StatusForbidden
								case !ok:
									want = http.StatusMethodNotAllowed
								case access == open:
								case !site.allowed:
									want = http.StatusForbidden
								case access == changes && !cfg.WriteRules:
									want = http.StatusForbidden
								case access == changes && token != writeToken:
									want = http.StatusUnauthorized
								case access == changes && path == "/api/rules/apply":
									want = http.StatusConflict // access granted, but it was not shown
								case access == reads && cfg.ReadToken != "" && token != readToken && (cfg.WriteToken == "" || token != writeToken):
									want = http.StatusUnauthorized
								case path == "/api/explain":
									want = http.StatusBadRequest // access granted, but there is no call in the query
								case path == "/api/resource":
									want = http.StatusNotFound
								case path == eventsPath && method == "GET":
									want = http.StatusServiceUnavailable // access granted, but there is no room
								}
								w := l.do(r)
								cases++
								if w.Code != want {
									t.Fatalf("%s %s, token %s, Host %q, %s: %d, want %d: %s", method, path, tokenName, host, site.name, w.Code, want, w.Body)
								}
								h := w.Header()
								if h.Get("Access-Control-Allow-Origin") != "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != policy {
									t.Fatalf("%s %s: headers %v", method, path, h)
								}
							}
						}
					}
				}
			}
			assert.Equal(t, len(declared)*len(methods)*len(tokens)*len(hosts)*len(sites), cases)
			assert.Equal(t, set, l.guard.Rules(), "nothing has changed")
		})
	}
}

// known bug 172. A name that resolves to this machine is not enough, and there are many ways to
// write one.
func TestHosts(t *testing.T) {
	l := newLab(t, Config{Hosts: []string{"console.example", "[fd00::1]"}}, api.RuleSet{})
	for host, ok := range map[string]bool{
		"127.0.0.1:8719": true, "127.0.0.1": true, "localhost": true, "LOCALHOST:1": true, "[::1]": true, "[::1]:8719": true,
		"console.example": true, "[fd00::1]:443": true,
		"evil.example": false, "evil.example:8719": false, "": false, "localhost.": false, "localhost.:8719": false, "127.0.0.1.": false, "::1": false,
		"[0:0:0:0:0:0:0:1]": false, "[::ffff:127.0.0.1]": false, "127.1": false, "2130706433": false, "0.0.0.0": false, "[localhost]": false,
		"localhost,evil.example": false, "localhost@evil.example": false, "127.0.0.1:8719:8719": false, "[::1": false, "localhost ": false, "[127.0.0.1]": false,
		"fd00::1": false, "console.example.evil.example": false,
	} {
		for _, path := range []string{"/", "/api/resources", "/no-such"} {
			r := request("GET", path, "")
			r.Host = host
			assert.Equal(t, ok, l.do(r).Code != http.StatusForbidden, "%q %s", host, path)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Addr: "0.0.0.0:8719"}, "other machines can reach"},
		{Config{Addr: ":8719"}, "other machines can reach"},
		{Config{Addr: "[::]:8719"}, "other machines can reach"},
		{Config{Addr: "10.0.0.1:8719", ReadToken: readToken}, "other machines can reach"},
		{Config{Addr: "console.example:8719", ReadToken: readToken}, "other machines can reach"},
		{Config{Addr: "127.0.0.1"}, "missing port"},
		{Config{Streams: -1}, "Streams is -1"},
		{Config{WriteRules: true}, "needs a WriteToken"},
		{Config{ReadToken: readToken, WriteToken: readToken}, "use different tokens"},
		{Config{ReadToken: "short"}, "ReadToken is shorter"},
		{Config{WriteToken: "short"}, "WriteToken is shorter"},
	} {
		guard, err := api.New(api.Config{})
		require.NoError(t, err)
		assert.ErrorContains(t, ListenAndServe(t.Context(), guard, tt.cfg), tt.want, "%+v", tt.cfg)
		require.NoError(t, guard.Close())
	}
	for _, cfg := range []Config{
		{}, {Addr: "localhost:0"}, {Addr: "[::1]:0"}, {Addr: "127.9.9.9:1"}, {Addr: "0.0.0.0:1", Insecure: true},
	} {
		_, err := cfg.withDefaults()
		assert.NoError(t, err, "%+v", cfg)
	}
}

// No response and no log contains a token.
func TestTokensAreNotTold(t *testing.T) {
	l := newLab(t, Config{ReadToken: readToken, WriteToken: writeToken, WriteRules: true}, api.RuleSet{})
	var all strings.Builder
	for _, r := range l.console.routes() {
		if r.pattern == eventsPath {
			continue
		}
		for _, token := range tokens {
			w := l.do(request(r.method, strings.NewReplacer("{$}", "", "{name}", "a").Replace(r.pattern), "{}", with(token)))
			all.WriteString(w.Body.String() + fmt.Sprint(w.Header()))
		}
	}
	all.WriteString(l.log.String())
	assert.NotContains(t, all.String(), readToken)
	assert.NotContains(t, all.String(), writeToken)
}
