package penstockecho_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockecho "github.com/penstock-go/penstock/adapters/echov4"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func start(t testing.TB, routes []conformance.Route, opts ...nethttp.Option) string {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover(), penstockecho.Middleware(opts...))
	for _, route := range routes {
		e.Add(route.Method, colon(route.Pattern), echo.WrapHandler(route.Handler))
	}
	return serve(t, e)
}

// serve serves on the loopback interface until the test ends.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// colon writes a pattern as the framework does.
func colon(pattern string) string {
	return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(pattern, ":$1")
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Start: start, Pattern: colon})
}
