// Package penstockecho guards servers built with echo, version 5:
//
//	e := echo.New()
//	e.Use(penstockecho.Middleware())
//
// Each route is a resource, "GET /users/:id"; requests that no route serves, including those
// rejected with 405, share "GET __unmatched__", one for each method. Package nethttp provides the
// options and defines calls, names, failures and refusals.
//
// Handlers return errors, which echo turns into responses later. An error counts as the status that
// echo gives it: any error but an echo.HTTPError or the like is a 500. A handler may return the
// refusal of a nested call: the response is a refusal, and does not count as a failure. Use the
// middleware with Use, not with Pre, where no route is known yet.
//
// The page docs/adapters/echo.md has examples.
package penstockecho

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Middleware guards the routes of an Echo or a Group.
func Middleware(opts ...nethttp.Option) echo.MiddlewareFunc {
	g := nethttp.NewGuard(opts...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			r := c.Request()
			if g.Looks() {
				if valued.Load() {
					r = r.WithContext(&response.Carried{Context: r.Context(), By: c})
				}
				for _, p := range c.PathValues() {
					r.SetPathValue(p.Name, p.Value)
				}
			}
			x, err := g.Begin(c.Response(), r, r.Method, pattern(c))
			if err != nil {
				g.Refuse(c.Response(), r, err)
				return nil
			}
			defer x.Close()
			before := c.Response()
			c.SetRequest(x.Request())
			c.SetResponse(x.Writer())
			err = next(c)
			c.SetResponse(before)
			to, status := echo.ResolveResponseStatus(before, err)
			x.End(status, err)
			if errors.Is(err, api.ErrBlocked) && (to == nil || !to.Committed) {
				g.Refuse(before, r, err)
				return nil
			}
			return err
		}
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
		c, ok := response.Carrier(r.Context()).(*echo.Context)
		if !ok {
			return ""
		}
		return response.Text(c.Get(key))
	}
}

// Param attaches such a value to each call, for hotspot rules that name the parameter.
func Param(name, key string) nethttp.Option { return nethttp.Param(name, Value(key)) }

// pattern returns the pattern of the route that serves the request, "" if none does.
func pattern(c *echo.Context) string {
	switch c.RouteInfo().Name {
	case echo.NotFoundRouteName, echo.MethodNotAllowedRouteName:
		return ""
	}
	return c.Path()
}
