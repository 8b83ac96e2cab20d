// Package penstockfiber guards servers built with fiber, version 3:
//
//	app := fiber.New()
//	app.Use(recover.New(), penstockfiber.Middleware())
//
// Each route is a resource, "GET /users/:id"; requests that no route serves, including those
// rejected with 405, share "GET __unmatched__", one for each method. HEAD of a route that serves
// GET counts as GET. Package nethttp provides the options and defines calls, names, failures and
// refusals. They see a copy of the request without its body, so nothing keeps fiber's buffers.
//
// Calls that the handler makes with c.Context() are counted below the request; c itself can't be
// used as that context. Handlers return errors, which fiber turns into responses later. A
// *fiber.Error counts as its status, any other error as a 500. A handler may return the refusal of
// a nested call: the response is a refusal, and does not count as a failure.
//
// A call whose response is streamed lasts until the stream has been sent. A handler that takes over
// the connection, as WebSockets do, ends the call by doing so; with nethttp.HoldHijacked the call
// lasts until the connection's handler returns.
//
// fiber does not notice that a client has disconnected: a call that waits for a rule keeps waiting,
// at most as long as the rule allows. fiber's timeout middleware leaves its handlers running: guard
// the handler inside it. Names ignore constraints on routes that a program has registered itself.
//
// The page docs/adapters/fiber.md has examples.
package penstockfiber

import (
	"errors"
	"runtime"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Middleware guards the routes of an App or a Group.
func Middleware(opts ...nethttp.Option) fiber.Handler {
	g, routes := nethttp.NewGuard(opts...), new(router)
	return func(c fiber.Ctx) error {
		at := routes.find(c, g.Looks())
		w := &response.Writer{To: c.Response(), HeaderOf: &c.Response().Header, Whole: g.Looks()}
		r := request(c, at, g.Looks())
		x, err := g.Begin(w, r, at.method, at.pattern)
		if err != nil {
			g.Refuse(w, r, err)
			return nil
		}
		w.Apply()
		defer x.Close()
		c.SetContext(x.Request().Context())
		err = c.Next()
		status := c.Response().StatusCode()
		switch of, ok := errors.AsType[*fiber.Error](err); {
		case ok:
			status = of.Code
		case err != nil:
			status = fiber.StatusInternalServerError
		}
		x.End(status, err)
		if errors.Is(err, api.ErrBlocked) {
			c.Response().ResetBody()
			g.Refuse(w, r, err)
			return nil
		}
		if status == fiber.StatusSwitchingProtocols || response.IsEventStream(string(c.Response().Header.ContentType())) {
			x.LongLived()
		}
		if c.RequestCtx().Hijacked() {
			x.Release()
			endWith(c.RequestCtx(), x)
		} else if c.Response().IsBodyStream() {
			endWith(c.RequestCtx(), x)
		}
		w.To, w.HeaderOf = nil, nil // or the call would keep the writer until its end
		return err
	}
}

// endWith ends a call when fiber has sent the response, or when the function that took over the
// connection returns.
func endWith(c *fasthttp.RequestCtx, x *nethttp.Exchange) {
	with := &closer{x.Later()}
	runtime.AddCleanup(with, func(end func()) { end() }, with.end) // see closer
	c.SetUserValue(x, with)
}

// closer is a value of a request, which fasthttp closes when the request is done. fasthttp drops a
// request whose connection breaks while it is taken over; then the call ends when the value becomes
// unreachable.
type closer struct{ end func() }

// Close ends the call. Further calls do nothing.
func (c *closer) Close() error {
	c.end()
	return nil
}
