package penstockfiber_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// handler adapts a net/http handler to fiber, with fiber's context. A handler that takes over the
// connection gets it when fasthttp hands it over, after the middleware.
func handler(h http.HandlerFunc) fiber.Handler {
	return func(c fiber.Ctx) error {
		ctx, given, done := c.Context(), make(chan struct{}), make(chan struct{})
		fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			h(&taken{w, given}, r.WithContext(ctx))
		})(c.RequestCtx())
		if c.RequestCtx().Hijacked() {
			c.RequestCtx().Hijack(func(net.Conn) {
				close(given)
				<-done
			})
		}
		return nil
	}
}

// taken is a response whose connection can be taken over once fasthttp hands it over.
type taken struct {
	http.ResponseWriter
	given chan struct{}
}

func (w *taken) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.(http.Hijacker).Hijack()
	<-w.given
	return conn, rw, err
}

// serve serves an App on the loopback interface until the test ends, and returns its URL.
func serve(t testing.TB, app *fiber.App) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, app)
	return "http://" + listener.Addr().String()
}

// serveOn serves an App until the test ends.
func serveOn(t testing.TB, listener net.Listener, app *fiber.App) {
	app.Server().MaxIdleWorkerDuration = 10 * time.Millisecond // the last goroutine of fasthttp takes this long to end
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // closes what is still open
		_ = app.ShutdownWithContext(ctx)
		_ = listener.Close()
		<-served //nolint:errcheck // it is shut down, which is all
	})
}

func start(t testing.TB, l net.Listener, routes []conformance.Route, opts ...nethttp.Option) {
	app := fiber.New()
	app.Use(recover.New(), penstockfiber.Middleware(opts...))
	for _, route := range routes {
		app.Add([]string{route.Method}, conformance.Colons(route.Pattern), handler(route.Handler))
	}
	serveOn(t, l, app)
}

func TestConformance(t *testing.T) {
	const never = "fiber never reports that a client has disconnected"
	conformance.Run(t, conformance.Server{Start: start, Pattern: conformance.Colons, Without: map[string]string{
		"an abort under a dead client is none":                              never,
		"a client that disconnects while the handler runs is not a failure": never,
		"a client that disconnects while it waits takes nothing":            never,
		"a request whose client disconnects keeps its estimate":             never,
	}})
}
