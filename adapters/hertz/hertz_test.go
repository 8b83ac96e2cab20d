package penstockhertz_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/middlewares/server/recovery"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/adaptor"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/cloudwego/hertz/pkg/network"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockhertz "github.com/penstock-go/penstock/adapters/hertz"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// handler adapts a net/http handler to hertz. A handler that takes over the connection gets it when
// hertz hands it over, after the middleware.
func handler(h http.HandlerFunc) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		w := &taken{take: make(chan struct{}), given: make(chan network.Conn)}
		over := make(chan any, 1)
		go func() {
			defer func() { over <- recover() }()
			adaptor.HertzHandler(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
				w.ResponseWriter = to
				h(w, r)
			}))(ctx, c)
		}()
		select {
		case p := <-over:
			if p != nil {
				panic(p)
			}
		case <-w.take:
			c.Response.HijackWriter(silent{})
			c.Hijack(func(conn network.Conn) {
				w.given <- conn
				<-over
			})
		}
	}
}

// taken is a response whose connection can be taken over once hertz hands it over.
type taken struct {
	http.ResponseWriter
	take  chan struct{}
	given chan network.Conn
}

func (w *taken) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	close(w.take)
	conn := <-w.given
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// silent makes hertz write no response.
type silent struct{ io.Writer }

func (silent) Flush() error    { return nil }
func (silent) Finalize() error { return nil }

// serve starts a server on the loopback interface with the routes of add, until the test ends, and
// returns its URL.
func serve(t testing.TB, add func(*server.Hertz)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, add)
	return "http://" + listener.Addr().String()
}

// serveOn starts a server on the listener with the routes of add, until the test ends.
func serveOn(t testing.TB, listener net.Listener, add func(*server.Hertz)) {
	hlog.SetSilentMode(true)
	hlog.SetOutput(io.Discard)
	h := server.New(server.WithListener(listener),
		server.WithHostPorts(""), // given a Unix socket's address, hertz removes the socket and makes its own
		server.WithSenseClientDisconnection(true),
		server.WithHandleMethodNotAllowed(true), server.WithExitWaitTime(0), server.WithIdleTimeout(time.Minute))
	add(h)
	ran := make(chan error, 1)
	go func() { ran <- h.Run() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = h.Shutdown(ctx)
		<-ran //nolint:errcheck // it is shut down, which is all
	})
}

func start(t testing.TB, l net.Listener, routes []conformance.Route, opts ...nethttp.Option) {
	serveOn(t, l, func(h *server.Hertz) {
		h.Use(recovery.Recovery(recovery.WithRecoveryHandler(func(_ context.Context, c *app.RequestContext, _ any, _ []byte) {
			c.AbortWithStatus(http.StatusInternalServerError)
		})), penstockhertz.Middleware(opts...))
		for _, route := range routes {
			h.Handle(route.Method, conformance.Colons(route.Pattern), handler(route.Handler))
		}
	})
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Start: start, Pattern: conformance.Colons})
}
