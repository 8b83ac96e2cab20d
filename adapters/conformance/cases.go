package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// every matches all resources.
const every = ".*"

var once = []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour}}

var ownResponse = []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: time.Hour,
	Refusal: api.Response{Status: http.StatusServiceUnavailable, Body: `{"busy":true}`}}}

var twice = []flow.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 2, Interval: time.Hour}}

var oneAtOnce = api.RuleSet{Isolation: []isolation.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1, MaxQueue: 1, MaxWait: time.Hour}}}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// byLevel has a rule that counts the requests of each level.
var byLevel = api.RuleSet{Adaptive: []adaptive.Rule{{Resource: every, Match: api.MatchRegex, Shed: api.ShedLevels}}}

// levels returns the options that read the level of requests from peers in these networks.
func levels(from []netip.Prefix, atMost api.Level) []nethttp.Option {
	return []nethttp.Option{nethttp.Criticality(nethttp.TrustedHeader(nethttp.CriticalityHeader, from...), atMost)}
}

// level makes a request for each word, and compares the level that the handler's context has.
func (s *Stage) level(want map[string]string) error {
	for word, want := range want {
		var header []string
		if word != "" {
			header = []string{nethttp.CriticalityHeader, word}
		}
		resp, body, err := s.get("/level", header...)
		if err := says(resp, err, http.StatusOK); err != nil || body != want {
			return fmt.Errorf("%q: the handler has %q, not %q: %w", word, body, want, err)
		}
	}
	return nil
}

// judged compares the numbers of requests that a rule has judged, by level.
func (s *Stage) judged(want ...int64) error {
	var got []int64
	for _, f := range s.Guard.RuleStats() {
		if f, ok := f.Details.(adaptive.Stats); ok {
			for _, level := range f.Levels {
				got = append(got, level.Offered)
			}
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the levels are %v, not %v", got, want)
	}
	return nil
}

// clients returns the options that find the client of a request.
func clients(p nethttp.Proxies) []nethttp.Option {
	return []nethttp.Option{nethttp.Param("client", p.ClientIP())}
}

// ownAddress returns the server's TCP address.
func ownAddress(r *http.Request) string {
	if own, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && strings.HasPrefix(own.Network(), "tcp") {
		return own.String()
	}
	return ""
}

// onceForEach admits one request of each client, and none without a client.
var onceForEach = api.RuleSet{Hotspot: []hotspot.Rule{{
	Resource: every, Match: api.MatchRegex, Param: "client", Threshold: 1, Interval: time.Hour, Missing: hotspot.MissingRefuse,
}}}

// tokens is the option for requests that say what they cost, and thousand a limit for each resource.
var (
	tokens = []nethttp.Option{nethttp.Cost("tokens", func(r *http.Request) int64 {
		n, _ := strconv.ParseInt(r.Header.Get("X-Cost"), 10, 64)
		return n
	})}
	refunded = append(tokens[:1:1], nethttp.RefundOnError("tokens"))
	thousand = api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex, Unit: "tokens", Threshold: 1000, Interval: time.Hour}}}
)

// Cases lists the requirements for every adapter.
var Cases = []Case{
	{Name: "a request that passes", Run: func(s *Stage) error {
		resp, body, err := s.get("/ok")
		if err := says(resp, err, http.StatusOK); err != nil || body != "ok" {
			return fmt.Errorf("%q: %w", body, err)
		}
		return s.counted(s.name("GET", "/ok"), figures{pass: 1, done: 1})
	}},
	{Name: "a request with a body", Run: func(s *Stage) error {
		resp, body, err := s.do(context.Background(), http.MethodPost, "/echo", "abc")
		if err := says(resp, err, http.StatusOK); err != nil || body != "abc" {
			return fmt.Errorf("%q: %w", body, err)
		}
		return s.counted(s.name("POST", "/echo"), figures{pass: 1, done: 1})
	}},
	{Name: "a wildcard is one resource", Run: func(s *Stage) error {
		for id := range 20 {
			if resp, _, err := s.get(fmt.Sprintf("/users/%d", id)); err != nil || resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%d: %w", id, err)
			}
		}
		return s.counted(s.name("GET", "/users/{id}"), figures{pass: 20, done: 20})
	}},
	{Name: "a query is not part of the resource", Run: func(s *Stage) error {
		for n := range 20 {
			if _, _, err := s.get(fmt.Sprintf("/ok?n=%d", n)); err != nil {
				return err
			}
		}
		return s.counted(s.name("GET", "/ok"), figures{pass: 20, done: 20})
	}},

	{Name: "a trusted peer names the level", Opts: levels(loopback, api.Critical), Set: byLevel, Run: func(s *Stage) error {
		if err := s.level(map[string]string{"": "critical true", "sheddable": "sheddable true", "criticalPlus": "critical true", "sheddablePlus;c=3": "sheddablePlus true", "none": "critical true"}); err != nil {
			return err
		}
		if n := s.Guard.UnknownCriticalities(); n != 1 {
			return fmt.Errorf("%d unknown words were counted", n)
		}
		return s.judged(0, 3, 1, 1)
	}},
	{Name: "others name no level", Opts: levels([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, api.CriticalPlus), Set: byLevel, Run: func(s *Stage) error {
		return errors.Join(s.level(map[string]string{"": "critical true", "sheddable": "critical true", "criticalPlus": "critical true"}), s.judged(0, 3, 0, 0))
	}},
	{Name: "no level is read by default", Set: byLevel, Run: func(s *Stage) error {
		return errors.Join(s.level(map[string]string{"": "critical false", "sheddable": "critical false", "criticalPlus": "critical false"}), s.judged(0, 3, 0, 0))
	}},
	{Name: "refused by flow", Set: api.RuleSet{Flow: once}, Run: refuses(http.StatusTooManyRequests, true)},
	{Name: "refused by a hotspot rule", Opts: []nethttp.Option{nethttp.Param("user", nethttp.Header("X-User"))},
		Set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: every, Match: api.MatchRegex, Param: "user", Threshold: 1, Interval: time.Hour}}},
		Run: refuses(http.StatusTooManyRequests, true)},
	{Name: "each value of each caller has its limit", Opts: []nethttp.Option{nethttp.Param("tenant", nethttp.Header("X-Tenant")), nethttp.Origin(nethttp.Header("X-User"))},
		Set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: every, Match: api.MatchRegex, Keys: []string{"param tenant", "origin", "resource"}, Threshold: 1, Interval: time.Hour}}},
		Run: keyed},
	{Name: "a plan sets the limit of a value", Opts: []nethttp.Option{nethttp.Param("user", nethttp.Header("X-User")), nethttp.Plan(nethttp.Header("X-Plan"))},
		Set: api.RuleSet{Hotspot: []hotspot.Rule{{Resource: every, Match: api.MatchRegex, Param: "user", Threshold: 1, Interval: time.Hour, Plans: map[string]float64{"pro": 3}}}},
		Run: planned},
	{Name: "refused by authority", Opts: []nethttp.Option{nethttp.Origin(nethttp.Header("X-User"))},
		Set: api.RuleSet{Authority: []authority.Rule{{Resource: every, Match: api.MatchRegex, List: authority.Deny, Origins: []string{"ann"}}}},
		Run: refuses(http.StatusForbidden, false)},
	{Name: "refused by a system rule", Set: api.RuleSet{System: []system.Rule{{Metric: system.QPS, Threshold: 1, Interval: time.Hour}}},
		Run: refuses(http.StatusServiceUnavailable, true)},
	{Name: "refused by a breaker", Set: api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: every, Match: api.MatchRegex,
		Threshold: 0.5, MinCalls: 1, Recovery: time.Hour}}}, Run: func(s *Stage) error {
		if _, _, err := s.get("/status?is=500"); err != nil {
			return err
		}
		if err := s.counted(s.name("GET", "/status"), figures{pass: 1, done: 1, failed: 1}); err != nil {
			return err
		}
		resp, body, err := s.get("/status?is=200")
		return refused(resp, body, err, http.StatusServiceUnavailable, true)
	}},
	{Name: "refused by isolation", Set: api.RuleSet{Isolation: []isolation.Rule{{Resource: every, Match: api.MatchRegex, Threshold: 1}}},
		Run: func(s *Stage) error {
			return s.holding("/hold", func() error {
				resp, body, err := s.get("/hold")
				return refused(resp, body, err, http.StatusTooManyRequests, false)
			})
		}},
	{Name: "the limit is stated on request", Opts: []nethttp.Option{nethttp.RateLimitHeaders(refusal.RateLimit)},
		Set: api.RuleSet{Flow: twice}, Run: func(s *Stage) error {
			for _, left := range []string{`"flow";r=1;t=3600`, `"flow";r=0;t=3600`, `"flow";r=0;t=`} {
				resp, _, err := s.get("/ok")
				if err != nil {
					return err
				}
				if got := resp.Header.Get("RateLimit-Policy"); got != `"flow";q=2;w=3600` {
					return fmt.Errorf("RateLimit-Policy: %s", got)
				}
				if got := resp.Header.Get("RateLimit"); !strings.HasPrefix(got, left) {
					return fmt.Errorf("RateLimit: %s, want %s", got, left)
				}
			}
			resp, body, err := s.get("/ok")
			return refused(resp, body, err, http.StatusTooManyRequests, true)
		}},
	{Name: "a custom refusal has the headers already", Set: api.RuleSet{Flow: once},
		Opts: []nethttp.Option{nethttp.RateLimitHeaders(refusal.RateLimit), nethttp.Refuse(func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("X-Seen", w.Header().Get("Retry-After"))
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "later")
		})}, Run: func(s *Stage) error {
			_, _, _ = s.get("/ok")
			resp, body, err := s.get("/ok")
			if err := says(resp, err, http.StatusConflict); err != nil || body != "later" {
				return fmt.Errorf("%q: %w", body, err)
			}
			after := resp.Header.Get("Retry-After")
			if after == "" || resp.Header.Get("X-Seen") != after || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("RateLimit-Policy") == "" {
				return fmt.Errorf("the headers are %v", resp.Header)
			}
			return nil
		}},
	{Name: "the limit is not stated by default", Set: api.RuleSet{Flow: once}, Run: func(s *Stage) error {
		_, _, _ = s.get("/ok")
		resp, body, err := s.get("/ok")
		if err := refused(resp, body, err, http.StatusTooManyRequests, true); err != nil {
			return err
		}
		for name := range resp.Header {
			if strings.Contains(name, "Ratelimit") || strings.Contains(name, "RateLimit") {
				return fmt.Errorf("the response has %s", name)
			}
		}
		return nil
	}},

	{Name: "a status of 500 is a failure", Run: outcome(500, 1)},
	{Name: "a status of 503 is a failure", Run: outcome(503, 1)},
	{Name: "a status of 404 is none", Run: outcome(404, 0)},
	{Name: "a status of 429 is none", Run: outcome(429, 0)},
	{Name: "the user decides what a failure is", Opts: []nethttp.Option{nethttp.Failure(func(_ *http.Request, status int, _ error) bool { return status == 404 })},
		Run: outcome(404, 1)},
	{Name: "a panic is a failure and leaks nothing", Run: func(s *Stage) error {
		_, _, _ = s.get("/panic") // an error or a 500, depending on the framework
		return s.counted(s.name("GET", "/panic"), figures{pass: 1, done: 1, failed: 1})
	}},
	{Name: "an abort under a live client is a failure", Run: func(s *Stage) error {
		_, _, _ = s.get("/abort")
		return s.counted(s.name("GET", "/abort"), figures{pass: 1, done: 1, failed: 1})
	}},
	{Name: "an abort under a dead client is none", Set: breakers, Run: func(s *Stage) error {
		if err := s.cancelWhileRunning("/proxy"); err != nil {
			return err
		}
		return s.leftOut(s.name("GET", "/proxy"), figures{pass: 1, done: 1})
	}},
	{Name: "a client that disconnects while the handler runs is not a failure", Set: breakers, Run: func(s *Stage) error {
		if err := s.cancelWhileRunning("/hold"); err != nil {
			return err
		}
		return s.leftOut(s.name("GET", "/hold"), figures{pass: 1, done: 1})
	}},
	{Name: "a client that disconnects while it waits takes nothing", Set: api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex,
		Threshold: 1, Interval: time.Hour, Behavior: flow.Throttle, MaxWait: 2 * time.Hour}}}, Run: func(s *Stage) error {
		if _, _, err := s.get("/ok"); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			_, _, err := s.do(ctx, http.MethodGet, "/ok", "")
			result <- err
		}()
		defer cancel()
		if err := s.until("the second request waits", func() bool { return s.Guard.Tree().Waiting == 1 }); err != nil {
			return err
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the client got: %w", err)
		}
		return s.counted(s.name("GET", "/ok"), figures{pass: 1, block: 1, done: 1})
	}},
	{Name: "a closing server responds to waiting requests", Set: api.RuleSet{Flow: []flow.Rule{{Resource: every, Match: api.MatchRegex,
		Threshold: 1, Interval: time.Hour, Behavior: flow.Throttle, MaxWait: 2 * time.Hour}}}, Run: func(s *Stage) error {
		if _, _, err := s.get("/ok"); err != nil {
			return err
		}
		result := make(chan error, 1)
		go func() {
			resp, body, err := s.get("/ok")
			result <- refused(resp, body, err, http.StatusServiceUnavailable, true)
		}()
		if err := s.until("the second request waits", func() bool { return s.Guard.Tree().Waiting == 1 }); err != nil {
			return err
		}
		err := s.Guard.Drain(context.Background())
		return errors.Join(err, <-result, s.counted(s.name("GET", "/ok"), figures{pass: 1, block: 1, done: 1}))
	}},
	{Name: "a client that disconnects before its body is read leaks nothing", only: netHTTP, Set: oneAtOnce, Run: func(s *Stage) error {
		return s.queued("POST", "/echo", func(leave func()) error {
			leave() // HTTP/1 notices only while the body is read
			return nil
		}, nil)
	}},
	{Name: "a deadline that expires while the request waits", only: netHTTP, Set: oneAtOnce, Run: func(s *Stage) error {
		return s.queued("GET", "/hold", func(func()) error {
			close(s.late)
			return s.counted(s.name("GET", "/hold"), figures{pass: 1, block: 1, inFlight: 1})
		}, func(resp *http.Response, body string, err error) error {
			return refused(resp, body, err, http.StatusServiceUnavailable, false)
		})
	}},
	{Name: "a wait leaves the server time to respond", only: netHTTP, writeTimeout: 2 * time.Second, Set: oneAtOnce, Run: func(s *Stage) error {
		e, err := s.Guard.Entry(context.Background(), s.name("GET", "/ok"))
		if err != nil {
			return err
		}
		defer e.Exit()
		resp, body, err := s.get("/ok") // or the connection breaks
		return refused(resp, body, err, http.StatusTooManyRequests, false)
	}},
	{Name: "a turn too late for a response is refused at once", only: netHTTP, writeTimeout: time.Hour, Set: api.RuleSet{Flow: []flow.Rule{{
		Resource: every, Match: api.MatchRegex, Threshold: 1, Interval: 2 * time.Hour, Behavior: flow.Throttle, MaxWait: 4 * time.Hour}}}, Run: func(s *Stage) error {
		if _, _, err := s.get("/ok"); err != nil {
			return err
		}
		resp, body, err := s.get("/ok")
		return refused(resp, body, err, http.StatusTooManyRequests, true)
	}},
	{Name: "a body that is only sent if it is wanted", only: netHTTP, Set: api.RuleSet{Flow: once}, Run: func(s *Stage) error {
		for _, wanted := range []bool{true, false} {
			body := &watched{Reader: strings.NewReader("abc")}
			resp, text, err := s.send(context.Background(), http.MethodPost, "/echo", body, "Expect", "100-continue")
			switch {
			case body.read.Load() != wanted:
				return fmt.Errorf("the body is sent: %t", body.read.Load())
			case !wanted:
				return refused(resp, text, err, http.StatusTooManyRequests, true)
			case says(resp, err, http.StatusOK) != nil || text != "abc":
				return fmt.Errorf("%q: %w", text, says(resp, err, http.StatusOK))
			}
		}
		return nil
	}},
	{Name: "a rule's own status and body", Set: api.RuleSet{Flow: ownResponse}, Run: func(s *Stage) error {
		if _, _, err := s.get("/ok"); err != nil {
			return err
		}
		resp, body, err := s.get("/ok")
		if err := says(resp, err, http.StatusServiceUnavailable); err != nil {
			return err
		}
		if h := resp.Header; body != `{"busy":true}` || h.Get("Content-Type") != "application/json" || h.Get("Retry-After") == "" {
			return fmt.Errorf("the response is %q with %v", body, h)
		}
		return nil
	}},
	{Name: "a client is who its certificate says", only: overTLS, Opts: []nethttp.Option{nethttp.Origin(nethttp.VerifiedPeer())},
		Set: api.RuleSet{Authority: []authority.Rule{{Resource: every, Match: api.MatchRegex, List: authority.Deny, Origins: []string{peer}}}},
		Run: func(s *Stage) error {
			resp, body, err := s.get("/ok")
			if err := refused(resp, body, err, http.StatusForbidden, false); err != nil {
				return err
			}
			if n, ok := s.Guard.Tree().Origin(s.name("GET", "/ok"), peer); !ok || n.Lifetime.Block != 1 || resp.ProtoMajor != 2 {
				return fmt.Errorf("HTTP/%d: the origin is not %s:\n%s", resp.ProtoMajor, peer, s.tree())
			}
			return nil
		}},

	{Name: "a client behind a proxy is one, however its address is written", Opts: clients(nethttp.Proxies{Networks: loopback}), Set: onceForEach,
		Run: func(s *Stage) error {
			return s.each("X-Forwarded-For", [][]string{
				{"203.0.113.1", "203.0.113.1:4711", "9.9.9.9, 203.0.113.1", "::ffff:203.0.113.1", "203.0.113.1, 127.0.0.1:80"},
				{"2001:db8::1", "[2001:DB8::1]:443", "[2001:db8:0::1]", "203.0.113.1, 2001:db8::1%eth0"},
				{"", "unknown", "9.9.9.9, _hidden"}, // so it is the proxy itself
			})
		}},
	{Name: "an untrusted header is not read", Opts: clients(nethttp.Proxies{UnixSocket: true}), Set: onceForEach, Run: func(s *Stage) error {
		return s.each("X-Forwarded-For", [][]string{{"203.0.113.1", "203.0.113.2", "203.0.113.3:80"}})
	}},
	{Name: "a client is who a middleware says it is", only: netHTTP, Opts: clients(nethttp.Proxies{UnixSocket: true}), Set: onceForEach, Run: func(s *Stage) error {
		if err := s.each("X-Remote", [][]string{
			{"203.0.113.1", "203.0.113.1:4711", "::ffff:203.0.113.1"}, {"2001:db8::1", "[2001:db8::1]:443", "[2001:db8::1]"},
		}); err != nil {
			return err
		}
		resp, _, err := s.get("/ok", "X-Remote", "@", "X-Forwarded-For", "203.0.113.9")
		return says(resp, err, http.StatusTooManyRequests) // the server's own end is no Unix socket
	}},
	{Name: "a request knows the server's own address", Opts: []nethttp.Option{nethttp.Param("client", ownAddress)}, Set: onceForEach, Run: func(s *Stage) error {
		resp, _, err := s.get("/ok")
		return says(resp, err, http.StatusOK)
	}},
	{Name: "a proxy on a Unix socket is trusted if configured", socket: true, Opts: clients(nethttp.Proxies{UnixSocket: true}), Set: onceForEach, Run: func(s *Stage) error {
		return s.each("X-Forwarded-For", [][]string{{"203.0.113.1", "9.9.9.9, 203.0.113.1:4711"}, {"[2001:db8::1]:443", "2001:db8::1"}})
	}},
	{Name: "a peer on a Unix socket has no address", socket: true, Opts: clients(nethttp.Proxies{Networks: loopback}), Set: onceForEach, Run: func(s *Stage) error {
		resp, _, err := s.get("/ok", "X-Forwarded-For", "203.0.113.1")
		return says(resp, err, http.StatusTooManyRequests)
	}},

	{Name: "a nested refusal is not a failure", Set: api.RuleSet{Flow: []flow.Rule{{Resource: "nested", Threshold: 0}},
		Breaker: breakers.Breaker}, Run: func(s *Stage) error {
		resp, _, err := s.get("/nested")
		if err := says(resp, err, http.StatusTooManyRequests); err != nil {
			return err
		}
		if err := s.counted("nested", figures{block: 1}); err != nil {
			return err
		}
		return s.leftOut(s.name("GET", "/nested"), figures{pass: 1, done: 1})
	}},
	{Name: "a nested refusal that is reported as 503 is not a failure", Set: api.RuleSet{Breaker: []breaker.Rule{{ID: "nested", Resource: "nested", Threshold: 0.5}}},
		Run: func(s *Stage) error {
			if err := s.Guard.ForceBreaker("nested", "nested", breaker.ForceOpen); err != nil {
				return err
			}
			resp, _, err := s.get("/nested")
			if err := says(resp, err, http.StatusServiceUnavailable); err != nil {
				return err
			}
			return s.counted(s.name("GET", "/nested"), figures{pass: 1, done: 1})
		}},
	{Name: "nested calls are counted below the request", Opts: []nethttp.Option{nethttp.Context("web"), nethttp.Origin(nethttp.Header("X-User"))},
		Run: func(s *Stage) error {
			if _, _, err := s.get("/nested", "X-User", "ann"); err != nil {
				return err
			}
			tree := s.Guard.Tree()
			entrance, ok := tree.Entrance("web")
			if !ok || len(entrance.Children) != 1 || len(entrance.Children[0].Children) != 1 || entrance.Children[0].Children[0].Name != "nested" {
				return fmt.Errorf("the tree is\n%s", s.tree())
			}
			if n, ok := tree.Origin("nested", "ann"); !ok || n.Lifetime.Pass != 1 {
				return fmt.Errorf("the nested call is not counted for ann:\n%s", s.tree())
			}
			return nil
		}},

	{Name: "a handler settles what its request has used", Opts: tokens, Set: thousand, Run: func(s *Stage) error {
		for _, c := range []struct {
			url, cost string
			status    int
		}{
			{"/settle?used=300", "900", http.StatusOK},
			{"/settle?used=700", "700", http.StatusOK},
			{"/settle?used=0", "1", http.StatusTooManyRequests},
		} {
			resp, _, err := s.get(c.url, "X-Cost", c.cost)
			if err := says(resp, err, c.status); err != nil {
				return err
			}
		}
		return nil
	}},
	{Name: "a request whose handler panics, or settles nothing, keeps its estimate", Opts: tokens, Set: thousand, Run: func(s *Stage) error {
		_, _, _ = s.get("/panic", "X-Cost", "300") // an error or a 500, depending on the framework
		if err := s.counted(s.name("GET", "/panic"), figures{pass: 1, done: 1, failed: 1}); err != nil {
			return err
		}
		return s.used("/panic", 300)
	}},
	{Name: "a request whose client disconnects keeps its estimate", Opts: refunded, Set: thousand, Run: func(s *Stage) error {
		if err := s.cancelWhileRunning("/hold", "X-Cost", "200"); err != nil {
			return err
		}
		if err := s.counted(s.name("GET", "/hold"), figures{pass: 1, done: 1}); err != nil {
			return err
		}
		return s.used("/hold", 200)
	}},

	{Name: "a request that fails before its response gives back what it reserved, if configured", Opts: refunded, Set: thousand, Run: func(s *Stage) error {
		_, _, _ = s.get("/panic", "X-Cost", "300")
		if err := s.counted(s.name("GET", "/panic"), figures{pass: 1, done: 1, failed: 1}); err != nil {
			return err
		}
		for n, status := range []int{http.StatusBadGateway, http.StatusNotFound, http.StatusAccepted} {
			resp, _, err := s.get(fmt.Sprintf("/status?is=%d", status), "X-Cost", "200")
			if err := errors.Join(says(resp, err, status), s.counted(s.name("GET", "/status"), figures{pass: int64(n + 1), done: int64(n + 1), failed: 1})); err != nil {
				return err
			}
		}
		return errors.Join(s.used("/panic", 0), s.used("/status", 200))
	}},

	{Name: "events arrive one by one, and have no response time", Run: func(s *Stage) error {
		resp, err := s.client.Get(s.URL + "/events")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		for n := range 3 {
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", n); line != want {
				return fmt.Errorf("the event is %q: %w", line, err)
			}
			if f := s.figures(s.name("GET", "/events")); f.inFlight != 1 {
				return fmt.Errorf("the stream goes on, and %d calls are in flight", f.inFlight)
			}
			if err := s.meet.Arrived(); err != nil {
				return err
			}
		}
		return s.counted(s.name("GET", "/events"), figures{pass: 1, done: 1, long: 1})
	}},
	{Name: "a connection that is taken over ends the call", only: http1, Run: socket(0, figures{pass: 1, done: 1})},
	{Name: "a connection that is taken over is held if configured", only: http1, Opts: []nethttp.Option{nethttp.HoldHijacked()},
		Run: socket(1, figures{pass: 1, done: 1, long: 1})},

	{Name: "paths that no route serves are one resource", Run: func(s *Stage) error {
		for n := range 500 {
			if resp, _, err := s.get(fmt.Sprintf("/no/%d", n)); err != nil || resp.StatusCode != http.StatusNotFound {
				return fmt.Errorf("%v: %w", resp, err)
			}
		}
		return s.fewResources()
	}},
	{Name: "methods that no route serves are few resources", Run: func(s *Stage) error {
		for n := range 200 {
			if _, _, err := s.do(context.Background(), fmt.Sprintf("X%d", n), "/ok", ""); err != nil {
				return err
			}
		}
		return s.fewResources()
	}},
	{Name: "only registered patterns become names", only: http1, Run: (*Stage).onlyRegistered},
	{Name: "requests without a route can be refused", Set: api.RuleSet{Flow: once}, Run: func(s *Stage) error {
		_, _, _ = s.get("/no/1")
		resp, body, err := s.get("/no/2")
		return refused(resp, body, err, http.StatusTooManyRequests, true)
	}},
}
