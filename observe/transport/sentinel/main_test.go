package sentinel

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// start is a whole second.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// lab is a Guard with a manual clock, behind a command API.
type lab struct {
	*api.Guard
	*handler
	t     *testing.T
	clock *api.ManualClock
	log   *record
}

// record is a log.
type record struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(p)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.String()
}

func newLab(t *testing.T, cfg Config) *lab {
	t.Helper()
	l := &lab{t: t, clock: api.NewManualClock(start), log: new(record)}
	var err error
	l.Guard, err = api.New(api.Config{Clock: l.clock, Logger: slog.New(slog.NewTextHandler(l.log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	books.Keep(t, l.Engine())
	c, err := cfg.check()
	require.NoError(t, err)
	l.handler = newHandler(l.Guard, &c)
	return l
}

// call makes n calls that take rt each.
func (l *lab) call(n int, rt time.Duration, resource, origin string) {
	l.t.Helper()
	ctx := api.WithOrigin(context.Background(), origin)
	for range n {
		e, err := l.Entry(ctx, resource, api.Inbound())
		if err != nil {
			require.ErrorIs(l.t, err, api.ErrBlocked)
			continue
		}
		l.clock.Advance(rt)
		e.Exit()
	}
}

// dashboard sends requests like Sentinel's.
type dashboard struct {
	t   *testing.T
	url string
}

func (l *lab) dashboard() dashboard {
	server := httptest.NewServer(l.handler)
	l.t.Cleanup(server.Close)
	return dashboard{l.t, server.URL}
}

// get sends a request like executeCommand of SentinelApiClient without an application: parameters
// are in the URL.
func (d dashboard) get(command string, params ...string) (int, string) {
	d.t.Helper()
	at := d.url + "/" + command
	if query := values(params); len(query) > 0 {
		at += "?" + query.Encode()
	}
	return d.ask(http.MethodGet, at, "", nil)
}

// post sends a request as a dashboard does to change a program with version 1.7.1 or later.
func (d dashboard) post(command string, params ...string) (int, string) {
	d.t.Helper()
	return d.ask(http.MethodPost, d.url+"/"+command, values(params).Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=UTF-8"}})
}

func (d dashboard) ask(method, at, body string, header http.Header) (int, string) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), method, at, strings.NewReader(body))
	require.NoError(d.t, err)
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "Apache-HttpAsyncClient/4.1.3 (Java/1.8.0_292)")
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, response.Body.Close()) }()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	require.NoError(d.t, err)
	return response.StatusCode, text.String()
}

func values(params []string) url.Values {
	v := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return v
}
