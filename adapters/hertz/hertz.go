// Package penstockhertz guards servers built with hertz:
//
//	h := server.Default(server.WithSenseClientDisconnection(true))
//	h.Use(penstockhertz.Middleware())
//
// Each route is a resource, "GET /users/:id"; requests that no route serves, including those
// rejected with 405, share "GET __unmatched__", one for each method. Package nethttp provides the
// options and defines calls, names, failures and refusals. They see a copy of the request without
// its body, so nothing keeps hertz' buffers.
//
// Calls that the handler makes with its context.Context are counted below the request; the
// *app.RequestContext can't be used as that context. A handler whose nested call is refused
// responds with [Refuse], which does not count as a failure.
//
// A call whose response is a stream lasts until the stream has been sent. A handler that takes over
// the connection ends the call by doing so; with nethttp.HoldHijacked the call lasts until the
// connection's handler returns.
//
// hertz ends a request's context when the client disconnects only with
// server.WithSenseClientDisconnection. Without it a call that waits for a rule keeps waiting, at
// most as long as the rule allows. Timeouts that leave their handlers running belong above this
// middleware.
//
// The page docs/adapters/hertz.md has examples.
package penstockhertz

import (
	"context"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/refusal"
)

// Middleware guards the routes that come after it.
func Middleware(opts ...nethttp.Option) app.HandlerFunc {
	g := nethttp.NewGuard(opts...)
	return func(ctx context.Context, c *app.RequestContext) {
		w, r := writer(c, g.Looks()), request(ctx, c, g.Looks())
		x, err := g.Begin(w, r, r.Method, c.FullPath())
		if err != nil {
			c.Abort()
			g.Refuse(w, r, err)
			return
		}
		w.Apply()
		defer x.Close()
		c.Next(x.Request().Context())
		var last error
		if e := c.Errors.Last(); e != nil {
			last = e.Err
		}
		status := c.Response.StatusCode()
		x.End(status, last)
		if status == http.StatusSwitchingProtocols || response.IsEventStream(string(c.Response.Header.ContentType())) {
			x.LongLived()
		}
		hijacked := c.Hijacked()
		if hijacked {
			x.Release()
		}
		if (hijacked || c.Response.IsBodyStream()) && !c.IsExiled() {
			end, finished := x.Later(), c.Finished()
			go func() {
				<-finished
				end()
			}()
		}
	}
}

// Refuse responds to a request with err, the error of a nested call that did not run, as
// refusal.Write does. ctx is the handler's. It reports whether err is such an error; otherwise it
// does nothing.
func Refuse(ctx context.Context, c *app.RequestContext, err error) bool {
	if refusal.Of(err).Reason == refusal.None {
		return false
	}
	c.Response.ResetBody()
	return refusal.Write(writer(c, false), request(ctx, c, false), err)
}

func writer(c *app.RequestContext, whole bool) *response.Writer {
	return &response.Writer{To: &c.Response, HeaderOf: &c.Response.Header, Whole: whole}
}
