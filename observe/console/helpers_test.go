package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

const (
	readToken  = "read-token-of-the-tests"
	writeToken = "write-token-of-the-tests"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// lab is a console of a guard with a manual clock, without a server.
type lab struct {
	*testing.T
	guard   *api.Guard
	clock   *api.ManualClock
	log     *logged
	console *console
	handler http.Handler
}

// logged is a log for concurrent writers.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newLab(t *testing.T, cfg Config, set api.RuleSet) *lab {
	t.Helper()
	return newLabOf(t, api.Config{}, cfg, set)
}

// newLabOf returns a lab of a guard with another configuration.
func newLabOf(t *testing.T, of api.Config, cfg Config, set api.RuleSet) *lab {
	t.Helper()
	l := &lab{T: t, clock: api.NewManualClock(begin), log: new(logged)}
	var err error
	of.Clock, of.Logger = l.clock, slog.New(slog.NewTextHandler(l.log, nil))
	l.guard, err = api.New(of)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.guard.Close()) })
	books.Keep(t, l.guard.Engine())
	require.NoError(t, l.guard.LoadRules(set))
	cfg, err = cfg.withDefaults()
	require.NoError(t, err)
	l.console = newConsole(l.guard, cfg)
	t.Cleanup(l.console.close)
	l.handler = l.console.handler()
	return l
}

// call makes n calls of a resource in a row.
func (l *lab) call(n int, resource string, opts ...engine.Option) (blocked int) {
	return l.callFrom(l.Context(), n, resource, opts...)
}

func (l *lab) callFrom(ctx context.Context, n int, resource string, opts ...engine.Option) (blocked int) {
	l.Helper()
	for range n {
		e, err := l.guard.Entry(ctx, resource, opts...)
		if err != nil {
			blocked++
		}
		e.Exit()
	}
	return blocked
}

// request returns a valid client request, with optional changes.
func request(method, target, body string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8719"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func with(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func (l *lab) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	return w
}

// get decodes a response.
func (l *lab) get(target string, into any) {
	l.Helper()
	w := l.do(request("GET", target, ""))
	require.Equal(l, http.StatusOK, w.Code, w.Body.String())
	require.NoError(l, json.Unmarshal(w.Body.Bytes(), into), w.Body.String())
}

func post(l *lab, target, body string, into any) (status int) {
	l.Helper()
	w := l.do(request("POST", target, body, with(writeToken)))
	text, err := io.ReadAll(w.Body)
	require.NoError(l, err)
	require.NoError(l, json.Unmarshal(text, into), string(text))
	return w.Code
}
