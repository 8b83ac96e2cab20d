package nethttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// onlyUnwraps is the writer of a middleware that leaves everything beyond the three methods to
// http.ResponseController.
type onlyUnwraps struct{ http.ResponseWriter }

func (w onlyUnwraps) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Taking over a connection ends the call, even if only http.ResponseController can do it, through
// the writer of a middleware around the guard.
func TestHijackThroughUnwrap(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	inFlight := func() int64 {
		n, _ := g.Tree().Resource("GET /socket")
		return n.InFlight
	}
	held := make(chan int64, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		held <- inFlight()
		answer(rw)
	})
	guarded := nethttp.Handler(mux, nethttp.On(g))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { guarded.ServeHTTP(onlyUnwraps{w}, r) }))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	assert.Zero(t, <-held)
}

// A stream is recognized at its first flush, even through such a writer.
func TestFlushThroughUnwrap(t *testing.T) {
	g := newGuard(t, api.RuleSet{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream := http.NewResponseController(w)
		assert.NoError(t, stream.SetWriteDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, stream.Flush())
	})
	guarded := nethttp.Handler(mux, nethttp.On(g))
	for i, two := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { guarded.ServeHTTP(onlyUnwraps{w}, r) }))
		s.EnableHTTP2 = two
		s.StartTLS()
		resp, err := s.Client().Get(s.URL + "/events")
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		s.Close()
		n, _ := g.Tree().Resource("GET /events")
		assert.EqualValues(t, i+1, n.Lifetime.LongLived, resp.Proto)
	}
}

func answer(rw *bufio.ReadWriter) {
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
	_ = rw.Flush()
}
