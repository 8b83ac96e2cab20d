package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/observe/console"
)

// served is a program with a console and a manual clock.
type served struct {
	*api.Guard
	t     *testing.T
	clock *api.ManualClock
	url   string
}

// serve runs a console until the end of the test.
func serve(t *testing.T, cfg console.Config, change ...func(*api.Config)) *served {
	t.Helper()
	s := &served{t: t, clock: api.NewManualClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	var err error
	of := api.Config{Clock: s.clock, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&of)
	}
	s.Guard, err = api.New(of)
	require.NoError(t, err)
	listening := make(chan string, 1)
	cfg.Addr, cfg.Listening = "127.0.0.1:0", func(url string) { listening <- url }
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, console.ListenAndServe(t.Context(), s.Guard, cfg)) })
	t.Cleanup(func() {
		running.Wait() // its context has ended
		assert.NoError(t, s.Close())
	})
	s.url = <-listening
	return s
}

// RoundTrip sends the request to the program, regardless of its address.
func (s *served) RoundTrip(r *http.Request) (*http.Response, error) {
	at, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host, r.Close = at.Host, at.Host, true
	return http.DefaultTransport.RoundTrip(r)
}

// shop is a program with two minutes of traffic: orders, some of them refused, with a nested query,
// and searches by two callers.
func shop(t *testing.T, cfg console.Config, change ...func(*api.Config)) *served {
	s := serve(t, cfg, change...)
	require.NoError(t, s.LoadRules(api.RuleSet{
		Flow: []flow.Rule{
			{ID: "orders", Resource: "GET /orders", Threshold: 16},
			{ID: "search", Resource: "GET /search", Threshold: 2, Mode: spec.Shadow},
		},
		Hotspot: []hotspot.Rule{{ID: "users", Resource: "GET /search", Param: "user", Threshold: 100}},
	}))
	for second := range 75 {
		s.clock.Advance(600 * time.Millisecond)
		s.call(t, 4+second%9, "http", "GET /orders", "", "sql orders.select")
		s.call(t, 1+second%3, "http", "GET /search", []string{"acme", "zeta"}[second%2], "")
		s.clock.AdvanceTo(time.Date(2026, 3, 1, 12, 0, second+1, 0, time.UTC).UnixNano())
	}
	return s
}

func (s *served) call(t *testing.T, n int, by, resource, origin, below string) {
	t.Helper()
	ctx := api.WithOrigin(api.WithContext(t.Context(), by), origin)
	for range n {
		err := s.Do(ctx, resource, func(ctx context.Context) error {
			s.clock.Advance(2 * time.Millisecond)
			if below == "" {
				return nil
			}
			return s.Do(ctx, below, func(context.Context) error {
				s.clock.Advance(time.Millisecond)
				return nil
			})
		}, api.Param("user", "ann"))
		if err != nil {
			require.ErrorIs(t, err, api.ErrBlocked)
		}
	}
}

// ask runs the command against a program.
func (s *served) ask(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := run(args, streams{in: strings.NewReader(""), out: &out, err: &errs, env: func(string) string { return "" }, now: time.Now, transport: s})
	return result{code, out.String(), errs.String()}
}

func TestLiveOnce(t *testing.T) {
	s := shop(t, console.Config{})
	tree := s.ask(t, "tree")
	assert.Equal(t, result{out: tree.out}, tree)
	var own strings.Builder
	require.NoError(t, s.Tree().WriteText(&own))
	assert.Contains(t, tree.out, "hottest")
	assert.Equal(t, own.String(), tree.out, "as the program itself writes it")

	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"resources", "http://shop"}, []string{"resource  ", "GET /orders  ", "sql orders.select  "}},
		{[]string{"rules", "shop:8719"}, []string{"code: 3 rules\n", "flow       orders ", "flow       search ", "hotspot    users "}},
		{[]string{"explain", "http://shop", "GET /orders"}, []string{"GET /orders", "orders"}},
		{[]string{"explain", "http://shop", "GET /search", "--arg", "user=ann", "--origin", "acme"}, []string{"users", "ann"}},
		{[]string{"tree", "--json"}, []string{`"root": {`}},
		{[]string{"resources", "--json"}, []string{`"total": 3`}},
		{[]string{"rules", "--json"}, []string{`"revision": 1`}},
		{[]string{"explain", "http://shop", "GET /orders", "--json"}, []string{`"resource": "GET /orders"`}},
	} {
		got := s.ask(t, c.args...)
		assert.Zero(t, got.code, "%v: %s", c.args, got.err)
		assert.Empty(t, got.err)
		for _, want := range c.want {
			assert.Contains(t, got.out, want, "%v", c.args)
		}
		if c.args[len(c.args)-1] != "--json" {
			for line := range strings.Lines(got.out) {
				assert.LessOrEqual(t, len([]rune(line)), 81, line)
			}
		}
	}
}

// Units that calls cost are in the tree, and explain takes those of a call.
func TestLiveCosts(t *testing.T) {
	s := serve(t, console.Config{})
	require.NoError(t, s.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "room", Resource: "POST /chat", Unit: "tokens", Threshold: 1000}}}))
	e, err := s.Entry(t.Context(), "POST /chat", api.Cost("tokens", 900))
	require.NoError(t, err)
	e.Settle("tokens", 300)
	e.Exit()
	assert.Contains(t, s.ask(t, "tree").out, "  tokens 300/min, 600 refunded\n")
	screen := newScreen(t, s)
	screen.press("t", "enter")
	assert.Contains(t, screen.text(), "\ntokens 300/min, 600 refunded\n")
	assert.Contains(t, s.ask(t, "explain", s.url, "POST /chat", "--cost", "tokens=700").out, "flow room: passes\n")
	assert.Contains(t, s.ask(t, "explain", s.url, "POST /chat", "--cost", "tokens=701").out, "flow room: refused for another 1s\n")
}

func withPercentiles(cfg *api.Config) { cfg.Percentiles = true }

// With percentiles on, they are shown next to all response times.
func TestLivePercentiles(t *testing.T) {
	s := shop(t, console.Config{}, withPercentiles)
	golden(t, "resources-percentiles.txt", s.ask(t, "resources").out)
	tree := s.ask(t, "tree").out
	assert.Equal(t, 3, strings.Count(tree, "p95 "), tree)
	assert.Contains(t, tree, "p50 2.9ms p95")
}

// With --watch the output repeats until it is interrupted.
func TestWatch(t *testing.T) {
	s := shop(t, console.Config{})
	watched := func(args ...string) string {
		var out, errs strings.Builder
		rounds := 0
		code := run(append(args, "--watch"), streams{out: &out, err: &errs, env: func(string) string { return "" }, transport: s, pause: func(d time.Duration) bool {
			assert.Equal(t, time.Second, d)
			rounds++
			s.call(t, 1, "http", "new "+string(rune('a'+rounds)), "", "")
			s.call(t, 1, "http", "GET /orders", "", "")
			return rounds < 3
		}})
		assert.Zero(t, code, errs.String())
		return out.String()
	}
	out := watched("resources")
	assert.Equal(t, 3, strings.Count(out, "resource  "))
	assert.Equal(t, 2, strings.Count(out, "new b"))
	assert.Equal(t, 1, strings.Count(out, "new c"))
	s.clock.Advance(2 * time.Second)
	out = watched("explain", "http://shop", "GET /orders")
	for _, want := range []string{"0 of 16", "1 of 16", "2 of 16"} {
		assert.Contains(t, out, want)
	}
	got := s.ask(t, "explain", "rules.yaml", "GET /orders", "--watch")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "--watch is for a running program")
}

// Errors are explained. A token is sent only to its program.
func TestLiveTrouble(t *testing.T) {
	const token = "canary-token-0123456789"
	s := shop(t, console.Config{ReadToken: token})
	got := s.ask(t, "resources")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "penstock: 127.0.0.1:8719 requires a token: set PENSTOCK_TOKEN\n", got.err)

	var out, errs strings.Builder
	std := streams{out: &out, err: &errs, env: func(name string) string {
		if name == tokenName {
			return token
		}
		return ""
	}, transport: s}
	assert.Zero(t, run([]string{"resources"}, std), errs.String())
	assert.Contains(t, out.String(), "GET /orders")

	answers := []struct {
		status     int
		text, body string
		want       string
	}{
		{404, "404 Not Found", "", "penstock: shop responded 404 Not Found: is it a Penstock console?\n"},
		{400, "400 Bad Request", `{"error":"no \u001b[31m such thing"}`, `penstock: shop: no \x1b[31m such thing` + "\n"},
		{302, "302 Found", "", "penstock: shop responded 302 Found: is it a Penstock console?\n"},
		{200, "200 OK", "[]x", "penstock: the response from shop is not a console's JSON: invalid character 'x' after top-level value\n"},
	}
	for _, a := range answers {
		errs.Reset()
		asked := 0
		std.transport = tripper(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: a.status, Status: a.text, Header: http.Header{"Location": {"http://elsewhere"}},
				Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
		})
		assert.Equal(t, 1, run([]string{"resources", "shop"}, std))
		assert.Equal(t, 1, asked, "a redirection is not followed")
		assert.Equal(t, a.want, errs.String())
	}
	errs.Reset()
	std.transport = tripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	assert.Equal(t, 1, run([]string{"tree", "http://user:secret@shop"}, std))
	assert.Equal(t, "penstock: shop doesn't answer: connection refused\n", errs.String())
	assert.Equal(t, 1, run([]string{"top", "shop"}, std), "before the screen is taken")

	for _, args := range [][]string{{"tree", "ftp://shop"}, {"tree", "http://"}, {"tree", "a", "b"}, {"explain", "http://shop"}, {"explain", "http://shop", "a", "b"}} {
		assert.Equal(t, 1, run(args, std), args)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTexts(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 9999: "9999", 10_000: "10k", 123_456: "123k", 1_000_000: "1.0M", 12_345_678: "12M", 1_999_999_999: "1.9G", 5e12: "5.0T"} {
		assert.Equal(t, want, tally(n))
	}
	for ms, want := range map[float64]string{0.05: "50µs", 0.5: "0.5ms", 9.94: "9.9ms", 12: "12ms", 1500: "1.5s", 65_000: "65s"} {
		assert.Equal(t, want, millis(ms, 1))
	}
	assert.Equal(t, "-", millis(0, 0))
	assert.Equal(t, `a\x1b[31m\nb\u202e`, safe("a\x1b[31m\nb\u202e", 80))
	assert.Equal(t, "abc…", safe("abcdef", 4))
	assert.Equal(t, " ▁▄█", sparks([]float64{0, 1, 50, 100}, 4))
	assert.Equal(t, "▁█", sparks([]float64{0, 1, 50, 100, 7}, 2), "the highest of several, the newest last")
	assert.Equal(t, "", sparks(nil, 5))
	assert.Equal(t, "   ", sparks(make([]float64, 3), 5))
	shared := ruleJSON{Kind: "flow", ID: "orders", Mode: "enforce"}
	shared.Measures = append(shared.Measures, measureJSON{Of: "units in 1s, on a lease", Measured: 120, Limit: 30_000, AtHand: true})
	assert.True(t, strings.HasSuffix(ruleLine(shared), "  120 of 30k at hand"), ruleLine(shared))
	shared.StoreAway = true
	assert.True(t, strings.HasSuffix(ruleLine(shared), "  store away"), ruleLine(shared))
	half := 0.5
	shared.Full = &half
	assert.True(t, strings.HasSuffix(ruleLine(shared), "  store away  50 %"), ruleLine(shared))
	assert.LessOrEqual(t, len(ruleLine(shared)), 80)
	assert.Equal(t, "██████████ 130 %", fullness(1.3))
	assert.Equal(t, "·········· -0 %", strings.ReplaceAll(fullness(-1), "  0", "-0"))
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	assert.Equal(t, read(t, path), text, "go test -run %s -update writes it anew", t.Name())
}
