package penstockgin_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/conformance"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func handler(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), penstockgin.Middleware(opts...))
	r.HandleMethodNotAllowed = true
	for _, route := range routes {
		r.Handle(route.Method, conformance.Colons(route.Pattern), func(c *gin.Context) { route.Handler(c.Writer, c.Request) })
	}
	return r
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Server{Handler: handler, Pattern: conformance.Colons})
}

// A mux below a route has routes that no rule applies to.
func TestNested(t *testing.T) {
	conformance.Nested(t, func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler {
		r := gin.New()
		r.Use(penstockgin.Middleware(opts...))
		r.GET("/plain/:id", gin.WrapH(plain))
		r.GET("/api/*path", gin.WrapH(inner))
		return r
	})
}
