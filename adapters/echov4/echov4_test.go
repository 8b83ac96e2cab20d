package penstockecho_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockecho "github.com/penstock-go/penstock/adapters/echov4"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func handler(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover(), penstockecho.Middleware(opts...))
	for _, route := range routes {
		e.Add(route.Method, conformance.Colons(route.Pattern), echo.WrapHandler(route.Handler))
	}
	return e
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: handler, Pattern: conformance.Colons})
}

// A mux below a route has routes that no rule applies to.
func TestNested(t *testing.T) {
	conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
		e := echo.New()
		e.Use(penstockecho.Middleware(opts...))
		e.GET("/plain/:id", echo.WrapHandler(plain))
		e.GET("/api/*", echo.WrapHandler(inner))
		return e
	})
}
