package console

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
)

// started is a console that listens.
type started struct {
	url  string
	stop func() // waits until nothing of it is left
}

func start(t *testing.T, guard *api.Guard, cfg Config) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	urls, ended := make(chan string, 1), make(chan error, 1)
	cfg.Addr, cfg.Listening = "127.0.0.1:0", func(url string) { urls <- url }
	go func() { ended <- ListenAndServe(ctx, guard, cfg) }()
	var once bool
	s := started{stop: func() {
		if !once {
			once = true
			cancel()
			assert.NoError(t, <-ended)
		}
	}}
	t.Cleanup(s.stop)
	select {
	case s.url = <-urls:
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
	}
	return s
}

func newGuard(t *testing.T) *api.Guard {
	t.Helper()
	guard, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, guard.Close()) })
	return guard
}

func TestItServesUntilItsContextEnds(t *testing.T) {
	guard := newGuard(t)
	s := start(t, guard, Config{})
	r, err := http.Get(s.url + "/api/resources")
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	assert.Equal(t, 200, r.StatusCode)
	assert.Contains(t, string(body), `"resources":[]`)
	http.DefaultClient.CloseIdleConnections()
	s.stop()
	_, err = net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.Error(t, err, "nobody listens any more")
	assert.Empty(t, guard.Refusals("a"))
}

// By default the console listens on loopback only.
func TestItListensOnLoopbackOnly(t *testing.T) {
	s := start(t, newGuard(t), Config{})
	port := s.url[strings.LastIndex(s.url, ":")+1:]
	var number int
	_, err := fmt.Sscan(port, &number)
	require.NoError(t, err)
	found := 0
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Skipf("NOT TESTED: the system does not tell who listens: %v", err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 3 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				found++
				assert.Equal(t, fmt.Sprintf("0100007F:%04X", number), fields[1])
			}
		}
	}
	assert.Equal(t, 1, found)
}

func TestStreams(t *testing.T) {
	guard := newGuard(t)
	s := start(t, guard, Config{Streams: 3})
	var readers []*bufio.Reader
	for range 3 {
		r, err := http.Get(s.url + "/api/events")
		require.NoError(t, err)
		defer r.Body.Close()
		require.Equal(t, 200, r.StatusCode)
		require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
		in := bufio.NewReader(r.Body)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, ": begins\n", line)
		readers = append(readers, in)
	}
	r, err := http.Get(s.url + "/api/events")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	assert.Equal(t, http.StatusServiceUnavailable, r.StatusCode)

	e, err := guard.Entry(t.Context(), "orders")
	require.NoError(t, err)
	e.Exit()
	for _, in := range readers {
		for {
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				require.True(t, json.Valid([]byte(data)), data)
				if strings.Contains(data, `["orders",1,`) {
					break
				}
			}
		}
	}
	s.stop()
	for _, in := range readers {
		_, err := io.Copy(io.Discard, in)
		assert.NoError(t, err, "the streams end with the server")
	}
}

// A stream that isn't read gets only the frames that fit its buffer and is cut off; other streams
// continue.
func TestAStreamThatLagsIsCutOff(t *testing.T) {
	l := newLab(t, Config{Streams: 2}, api.RuleSet{})
	h := l.console.events
	h.active = true // so that all frames come from here
	slow, quick := h.join(), h.join()
	require.NotNil(t, quick)
	require.Nil(t, h.join())
	for i := range 3 * frameBuffer {
		require.True(t, h.send([]byte{byte(i)}))
		require.Equal(t, []byte{byte(i)}, <-quick.frames)
	}
	kept := 0
	for range slow.frames {
		kept++
	}
	assert.Equal(t, frameBuffer, kept)
	h.leave(slow)
	require.NotNil(t, h.join(), "its place is free")
	h.leave(quick)
	for s := range h.streams {
		h.leave(s)
	}
	assert.False(t, h.send(nil))
	assert.False(t, h.active, "nothing runs while nobody is there")
}

// Clients that never finish a request, or never read, don't block others.
func TestSlowClients(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: as long as slow clients have")
	}
	s := start(t, newGuard(t), Config{Streams: 4})
	addr := strings.TrimPrefix(s.url, "http://")
	for i := range 200 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		switch i % 3 {
		case 0:
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
		case 1:
			_, _ = io.WriteString(c, "POST /api/rules/diff HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}
	}
	r, err := http.Get(s.url + "/api/resources")
	require.NoError(t, err)
	defer r.Body.Close()
	assert.Equal(t, 200, r.StatusCode)
}

func TestLimitsOfRequests(t *testing.T) {
	l := newLab(t, Config{}, api.RuleSet{})
	for range maxRequests {
		l.console.answering <- struct{}{}
	}
	w := l.do(request("GET", "/api/resources", ""))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	<-l.console.answering
	assert.Equal(t, 200, l.do(request("GET", "/api/resources", "")).Code)
	assert.Len(t, l.console.answering, maxRequests-1)
}

// Half-sent requests don't count as being served, regardless of their number, and only a few are read
// at a time.
func TestHalfSentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Config{WriteToken: writeToken, WriteRules: true}, api.RuleSet{})
		var sending []*io.PipeWriter
		var codes []int
		var mu sync.Mutex
		for range maxBodies + 3 {
			r := request("POST", "/api/rules/diff", "{}", with(writeToken))
			body, half := io.Pipe()
			r.Body, r.ContentLength = body, 100
			sending = append(sending, half)
			go func() {
				w := l.do(r)
				mu.Lock()
				defer mu.Unlock()
				codes = append(codes, w.Code)
			}()
		}
		synctest.Wait()
		assert.Equal(t, []int{503, 503, 503}, codes)
		assert.Empty(t, l.console.answering)
		assert.Equal(t, 200, l.do(request("GET", "/api/resources", "")).Code)
		for _, half := range sending {
			go func() { // a refused one reads no more
				_, _ = io.WriteString(half, "{}")
				_ = half.Close()
			}()
		}
		synctest.Wait()
		assert.Equal(t, []int{503, 503, 503, 422, 422, 422, 422, 422, 422, 422, 422}, codes)
		assert.Empty(t, l.console.reading)
		for _, half := range sending {
			_ = half.CloseWithError(io.EOF)
		}
	})
}

// deadlines is a ResponseWriter that records read deadlines.
type deadlines struct {
	http.ResponseWriter
	until []time.Duration
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.until = append(d.until, time.Until(at))
	return nil
}

// A client has little time to send the body of a refused request.
func TestBodiesThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Config{WriteToken: writeToken, WriteRules: true}, api.RuleSet{})
		for _, tt := range []struct {
			r    *http.Request
			code int
			want []time.Duration
		}{
			{request("POST", "/api/rules/diff", "{}", with(writeToken)), 422, []time.Duration{unreadTime, requestTime}},
			{request("POST", "/api/rules/diff", "{}"), 401, []time.Duration{unreadTime}},
			{request("POST", "/api/resources", "{}"), 405, []time.Duration{unreadTime}},
			{request("GET", "/api/resources", ""), 200, nil},
		} {
			w := httptest.NewRecorder()
			d := &deadlines{ResponseWriter: w}
			l.handler.ServeHTTP(d, tt.r)
			assert.Equal(t, tt.code, w.Code)
			assert.Equal(t, tt.want, d.until)
		}
	})
}

func TestTLS(t *testing.T) {
	donor := httptest.NewTLSServer(http.NotFoundHandler())
	defer donor.Close()
	s := start(t, newGuard(t), Config{TLS: &tls.Config{Certificates: donor.TLS.Certificates}})
	require.True(t, strings.HasPrefix(s.url, "https://"))
	client := donor.Client()
	client.Timeout = time.Minute
	r, err := client.Get(s.url + "/")
	require.NoError(t, err)
	defer r.Body.Close()
	assert.Equal(t, 200, r.StatusCode)
	assert.Equal(t, 1, r.ProtoMajor)
	client.CloseIdleConnections()
}

// The page is small, and loads nothing from other sites.
func TestThePage(t *testing.T) {
	l := newLab(t, Config{ReadToken: readToken}, api.RuleSet{})
	total := 0
	for _, f := range page {
		path := strings.TrimSuffix(f.path, "{$}")
		w := l.do(request("GET", path, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }))
		require.Equal(t, 200, w.Code, path)
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
		require.Equal(t, f.contentType, w.Header().Get("Content-Type"))
		if f.name != "uplot.LICENSE" {
			total += w.Body.Len()
		}
		plain := l.do(request("GET", path, "")).Body.String()
		require.Equal(t, string(f.read()), plain)
		if f.name == "index.html" {
			for _, bad := range []string{"http://", "https://", "style=", "<style", " onclick", "<script>"} {
				assert.NotContains(t, plain, bad)
			}
		}
	}
	assert.LessOrEqual(t, total, 100_000, "bytes compressed")
}

// Idle connections are closed to make room for new ones, including connections that become idle while
// one waits.
func TestIdleConnectionsGiveWay(t *testing.T) {
	slow := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-slow
		}
	}))
	places := newBounded(server.Listener, 2)
	server.Listener, server.Config.ConnState = places, places.note
	server.Start()
	t.Cleanup(server.Close)
	get := func(path string) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		require.NoError(t, err)
		if path == "/slow" {
			return
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil) // go test ends it
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	for range 10 {
		get("/")
	}
	get("/slow")
	for range 10 { // in addition
		get("/")
	}
	get("/slow")
	close(slow)
	get("/")
}
