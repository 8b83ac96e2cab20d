package penstockgin_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func start(t testing.TB, routes []conformance.Route, opts ...nethttp.Option) string {
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), penstockgin.Middleware(opts...))
	r.HandleMethodNotAllowed = true
	for _, route := range routes {
		r.Handle(route.Method, colon(route.Pattern), func(c *gin.Context) { route.Handler(c.Writer, c.Request) })
	}
	return serve(t, r)
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
