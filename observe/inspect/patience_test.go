package inspect_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/observe/inspect"
)

// pipes is a listener of unbuffered connections: a write waits until it is read.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// A reader that doesn't keep up is cut off; others are not. known bug 119
func TestPatienceWithReaders(t *testing.T) {
	for _, c := range []struct {
		name         string
		writeTimeout time.Duration
		chunk        int64         // bytes per read
		pause        time.Duration // after each read
		cut          time.Duration // when it is cut off, 0 for never
	}{
		{"reads at once", 0, 1 << 20, 0, 0},
		{"reads 64 KiB a second", 0, 32 << 10, 500 * time.Millisecond, 0},
		{"reads all after 9 s", 0, 0, 9 * time.Second, 0},
		{"never reads", 0, 0, time.Hour, 10 * time.Second},
		{"reads half of that", 0, 32 << 10, time.Second, 20 * time.Second},
		{"reads a byte a second", 0, 1, time.Second, 10 * time.Second},
		{"never reads, of a server with less patience", 3 * time.Second, 0, time.Hour, 3 * time.Second},
		{"reads 64 KiB a second, of a server with less patience", 3 * time.Second, 32 << 10, 500 * time.Millisecond, 3 * time.Second},
		{"never reads, of a server with more patience", time.Minute, 0, time.Hour, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, engine.Config{})
				for i := range 2_000 { // 2 MB of JSON
					l.call(anywhere, 1, 0, fmt.Sprintf("GET /customers/%05d/orders", i))
				}
				h := inspect.Handler(l.Engine, inForce)
				took := make(chan time.Duration, 1)
				listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				server := &http.Server{WriteTimeout: c.writeTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					begin := time.Now()
					h.ServeHTTP(w, r)
					took <- time.Since(begin)
				})}
				go func() { _ = server.Serve(listener) }() // until it is closed
				defer server.Close()
				conn := listener.dial()
				defer conn.Close()
				fmt.Fprint(conn, "GET /tree?format=json HTTP/1.1\r\nHost: here\r\n\r\n")
				size, err := readSlowly(conn, c.chunk, c.pause)
				if c.cut == 0 {
					require.NoError(t, err)
					require.Greater(t, size, int64(1<<20))
					return
				}
				require.Error(t, err)
				require.InDelta(t, c.cut, <-took, float64(time.Second))
			})
		})
	}
}

// readSlowly reads a reply in chunks with a pause after each; everything after one pause if chunk
// is 0.
func readSlowly(conn net.Conn, chunk int64, pause time.Duration) (size int64, err error) {
	if chunk == 0 {
		time.Sleep(pause)
		pause, chunk = 0, 1<<20
	}
	r, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	for err == nil {
		var n int64
		n, err = io.CopyN(io.Discard, r.Body, chunk)
		size += n
		time.Sleep(pause)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return size, err
}
