package nethttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
)

// known bug 234: requests to a healthy server that are canceled because a sibling failed end with
// the sibling's error, since http.Client returns the cause. The breaker leaves them out; an error
// that the user's own function calls a failure still counts.
func TestRequestsCancelledWithACause(t *testing.T) {
	for name, c := range map[string]struct {
		opts                []nethttp.Option
		answers, stream     bool
		calls, bad, neutral int64
	}{
		"before the response":             {neutral: 1},
		"while the body is read":          {answers: true, neutral: 1},
		"a stream that has begun":         {answers: true, stream: true}, // no response time, and a success
		"a failure, as the user says":     {opts: []nethttp.Option{failures(true)}, calls: 1, bad: 1},
		"not a failure, as the user says": {opts: []nethttp.Option{failures(false)}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.stream {
				c.calls = 1
			}
			set := api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "remote", Threshold: 1, MinCalls: 10}}}
			arrived := make(chan struct{})
			g, client, url := transported(t, set, func(w http.ResponseWriter, r *http.Request) {
				if c.stream {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				if c.answers {
					_, _ = io.WriteString(w, "data: 1\n\n")
					w.(http.Flusher).Flush()
				}
				close(arrived)
				<-r.Context().Done()
			}, c.opts...)
			errSibling := errors.New("a sibling failed")
			ctx, cancel := context.WithCancelCause(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			go func() {
				<-arrived
				if !c.answers {
					cancel(errSibling)
				}
			}()
			resp, err := client.Do(r)
			if c.answers {
				require.NoError(t, err)
				cancel(errSibling)
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			require.Error(t, err)
			status := g.Breakers()[0]
			assert.Equal(t, [3]int64{c.calls, c.bad, c.neutral}, [3]int64{status.Calls, status.Bad, status.Neutral})
		})
	}
}

func failures(failed bool) nethttp.Option {
	return nethttp.Failure(func(*http.Request, int, error) bool { return failed })
}

// known bug 233: a client that disconnects makes the outcome unknown, regardless of the status the
// handler returns; a panic is a failure in any case.
func TestHandlersWhoseClientsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		handle  http.HandlerFunc
		calls   int64
		bad     int64
		neutral int64
	}{
		"200":     {handle: func(http.ResponseWriter, *http.Request) {}, neutral: 1},
		"500":     {handle: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, neutral: 1},
		"aborted": {handle: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, neutral: 1},
		"panics":  {handle: func(http.ResponseWriter, *http.Request) { panic("down") }, calls: 1, bad: 1},
		"a stream": {handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
		}, calls: 1},
		"a nested refusal": {handle: func(w http.ResponseWriter, r *http.Request) {
			refusal.Write(w, r, &core.BlockError{Kind: core.KindFlow})
		}, neutral: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "all", Threshold: 1, MinCalls: 10}}})
			ctx, cancel := context.WithCancel(t.Context())
			h := nethttp.Middleware(nethttp.On(g), nethttp.Resource(func(*http.Request, string) string { return "all" }))(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					cancel()
					c.handle(w, r)
				}))
			func() {
				defer func() { _ = recover() }()
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			}()
			status := g.Breakers()[0]
			assert.Equal(t, [3]int64{c.calls, c.bad, c.neutral}, [3]int64{status.Calls, status.Bad, status.Neutral})
		})
	}
}

// known bug 238: a client that closes its WebSocket ends a stream, like a client that closes a
// stream of events. The server cancels the request's context if the handler notices this through
// the reader of Hijack; a half-open breaker would stay half-open, and a breaker that counts
// failures would count failures only.
func TestHeldConnectionsWhoseClientsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		end        func()
		calls, bad int64
	}{
		"returns": {end: func() {}, calls: 1},
		"aborts":  {end: func() { panic(http.ErrAbortHandler) }, calls: 1},
		"panics":  {end: func() { panic("down") }, calls: 1, bad: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "GET /socket", Threshold: 1, MinCalls: 10}}})
			mux := http.NewServeMux()
			mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
				_, err = io.Copy(io.Discard, rw)
				assert.NoError(t, err)
				assert.ErrorIs(t, r.Context().Err(), context.Canceled)
				c.end()
			})
			ended := make(chan struct{})
			guarded := nethttp.Handler(mux, nethttp.On(g), nethttp.HoldHijacked())
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				guarded.ServeHTTP(w, r)
			}))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Start()
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			require.NoError(t, err)
			_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
			require.NoError(t, conn.Close())
			<-ended
			status := g.Breakers()[0]
			assert.Equal(t, [3]int64{c.calls, c.bad, 0}, [3]int64{status.Calls, status.Bad, status.Neutral})
		})
	}
}
