package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func TestEveryStreamHasItsRule(t *testing.T) {
	set, err := rules.Load("rules.yaml")
	require.NoError(t, err)
	for _, s := range newStreams() {
		_, ok := result{rules: set}.ruleOf(s)
		assert.True(t, ok, "%s: no rule %q", s.name, s.rule)
	}
}

// The whole program runs for two seconds: run fails if more calls passed than a limit allows.
func TestLimitsHold(t *testing.T) {
	before := runtime.NumGoroutine()
	var out screen
	require.NoError(t, run(t.Context(), settings{out: &out, rules: rulesCopy(t), seconds: 2}))

	text := out.String()
	assert.Contains(t, text, "Every limit held")
	assert.Contains(t, text, "sql orders.select")
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSpace(line))), 80, "%q is too wide", line)
	}
	set, err := rules.Load("rules.yaml")
	require.NoError(t, err)
	for _, s := range newStreams() {
		rule, _ := result{rules: set}.ruleOf(s)
		average := passedOf(t, text, s.name)
		assert.Positive(t, average, s.name)
		assert.LessOrEqual(t, average*2, rule.Threshold*(2+1), s.name)
	}
	nothingLeft(t, before, text)
}

// The test edits the rules during the run, correctly and incorrectly.
func TestEditingRules(t *testing.T) {
	before := runtime.NumGoroutine()
	file := rulesCopy(t)
	original, err := os.ReadFile(file)
	require.NoError(t, err)

	var out screen
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, settings{out: &out, rules: file, terminal: true}) }()
	eventually(t, "the start", func() bool { return out.url() != "" })
	status, _ := get(t, out.url()+"/hello")
	assert.Equal(t, http.StatusOK, status)

	// After this edit no call passes.
	write(t, file, strings.Replace(string(original), "threshold: 2\n", "threshold: 0\n", 1))
	eventually(t, "the new threshold", func() bool {
		status, _ := get(t, out.url()+"/hello")
		return status == http.StatusTooManyRequests
	})
	eventually(t, "a word about it", func() bool {
		return strings.Contains(out.String(), "~ flow hello: threshold 2 -> 0")
	})

	// A mistake changes nothing and is reported.
	write(t, file, strings.Replace(string(original), "threshold: 2\n", "treshold: 2\n", 1))
	eventually(t, "the mistake to be reported", func() bool {
		return regexp.MustCompile(`rules\.yaml:\d+:\d+: .*did you mean "threshold"`).MatchString(out.String())
	})
	status, _ = get(t, out.url()+"/hello")
	assert.Equal(t, http.StatusTooManyRequests, status)

	// With a threshold again, a refused client gets a Retry-After.
	write(t, file, strings.Replace(string(original), "threshold: 2\n", "threshold: 1\n", 1))
	eventually(t, "a refusal that ends", func() bool {
		status, header := get(t, out.url()+"/hello")
		seconds, err := strconv.Atoi(header.Get("Retry-After"))
		return status == http.StatusTooManyRequests && err == nil && seconds > 0 && seconds <= 10
	})

	url := out.url()
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience(t)):
		t.Fatal("it goes on after its context has ended")
	}
	nothingLeft(t, before, url)
}

func TestUnknownKeysAreRefused(t *testing.T) {
	var out screen
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, settings{out: &out, rules: rulesCopy(t)}) }()
	eventually(t, "the start", func() bool { return out.url() != "" })

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, out.url()+"/catalog", nil)
	require.NoError(t, err)
	r.Header.Set("X-API-Key", "acme") // a name is not a key
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	response.Body.Close()
	assert.Equal(t, http.StatusUnauthorized, response.StatusCode)

	for _, path := range []string{"/tree", "/nodes", "/rules"} {
		status, _ := get(t, out.url()+path)
		assert.Equal(t, http.StatusOK, status, path)
	}
	page := regexp.MustCompile(`The dashboard is at\s+(http://[\d.:]+)`).FindStringSubmatch(out.String())
	require.NotNil(t, page, out.String())
	for _, path := range []string{"/", "/api/resources"} {
		status, _ := get(t, page[1]+path)
		assert.Equal(t, http.StatusOK, status, path)
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestBadRuleFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, "flow:\n  - resource: GET /orders\n    threshold: ten\n")
	err := run(t.Context(), settings{out: new(screen), rules: file})
	require.ErrorContains(t, err, "rules.yaml:3:16")
}

func TestFindRules(t *testing.T) {
	file, remove, err := findRules("")
	require.NoError(t, err)
	defer remove()
	found, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(embeddedRules), string(found))
}

func TestProgressIsErased(t *testing.T) {
	var out bytes.Buffer
	c := &console{w: &out, terminal: true}
	c.showProgress("half")
	c.printf("a line\n")
	assert.Equal(t, "half\r    \ra line\n", out.String())
}

// screen collects the program's output.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// url returns the server's URL, or "" until it is printed.
func (s *screen) url() string { return regexp.MustCompile(`http://[\d.:]+`).FindString(s.String()) }

func get(t *testing.T, url string) (status int, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	response.Body.Close()
	return response.StatusCode, response.Header
}

// rulesCopy returns the path of a copy of rules.yaml.
func rulesCopy(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("rules.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, string(data))
	return file
}

// write replaces a file atomically with a new one.
func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// patience returns the time left of go test's limit: a shorter one would fail on a busy machine.
func patience(t *testing.T) time.Duration {
	if end, ok := t.Deadline(); ok {
		return time.Until(end) - 5*time.Second
	}
	return time.Hour
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience(t)); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// passedOf returns the average number of requests a second that passed, from the summary.
func passedOf(t *testing.T, text, stream string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if figures, ok := strings.CutPrefix(line, stream); ok {
			passed, err := strconv.ParseFloat(strings.Fields(figures)[1], 64)
			require.NoError(t, err)
			return passed
		}
	}
	t.Fatalf("no line about %s in\n%s", stream, text)
	return 0
}

// nothingLeft waits until the number of goroutines is as before, and checks that nothing listens.
// printed contains the server's address.
func nothingLeft(t *testing.T, before int, printed string) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "the last goroutines", func() bool { return runtime.NumGoroutine() <= before })
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(printed)
	require.NotEmpty(t, address)
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Errorf("somebody still listens on %s", address)
	}
}
