// Package penstockgin guards servers built with gin:
//
//	router := gin.New()
//	router.Use(gin.Recovery(), penstockgin.Middleware())
//
// Each route is a resource, "GET /users/:id"; requests that no route serves share "GET
// __unmatched__", one for each method. Package nethttp provides the options and defines calls,
// names, failures and refusals.
//
// A middleware that writes responses because of c.Errors belongs below this one, since the status
// when the chain has returned counts. A handler whose nested call is refused responds with
// refusal.Write(c.Writer, c.Request, err).
//
// The page docs/adapters/gin.md has examples.
package penstockgin

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// Middleware guards the routes that come after it.
func Middleware(opts ...nethttp.Option) gin.HandlerFunc {
	g := nethttp.NewGuard(opts...)
	return func(c *gin.Context) {
		if g.Looks() {
			if valued.Load() {
				c.Request = c.Request.WithContext(&response.Carried{Context: c.Request.Context(), By: c})
			}
			for _, p := range c.Params {
				c.Request.SetPathValue(p.Key, p.Value)
			}
		}
		x, err := g.Begin(c.Writer, c.Request, c.Request.Method, c.FullPath())
		if err != nil {
			c.Abort()
			g.Refuse(c.Writer, c.Request, err)
			return
		}
		defer x.Close()
		c.Request, c.Writer = x.Request(), &writer{c.Writer, x}
		c.Next()
		var last error
		if e := c.Errors.Last(); e != nil {
			last = e.Err
		}
		x.End(c.Writer.Status(), last)
	}
}

// valued is set by the first [Value]; until then requests carry nothing extra.
var valued atomic.Bool

// Value reads the value that earlier middleware has stored under the key with c.Set, as text, or ""
// if nothing is there.
//
//	Middleware(nethttp.Origin(Value("tenant")))
func Value(key string) nethttp.Value {
	valued.Store(true)
	return func(r *http.Request) string {
		c, ok := response.Carrier(r.Context()).(*gin.Context)
		if !ok {
			return ""
		}
		value, _ := c.Get(key)
		return response.Text(value)
	}
}

// Param attaches such a value to each call, for hotspot rules that name the parameter.
func Param(name, key string) nethttp.Option { return nethttp.Param(name, Value(key)) }

// writer is gin's writer, and notifies the exchange.
type writer struct {
	gin.ResponseWriter
	x *nethttp.Exchange
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack notifies the exchange, since it may end the call.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.x.Writer().(http.Hijacker).Hijack()
}

// Flush notifies the exchange, since the response may be a stream of events.
func (w *writer) Flush() { w.x.Writer().(http.Flusher).Flush() }

// Write notifies the exchange likewise.
func (w *writer) Write(b []byte) (int, error) { return w.x.Writer().Write(b) }
