// Package penstockecho guards servers that are built with echo, version 4:
//
//	e := echo.New()
//	e.Use(penstockecho.Middleware())
//
// Each route is a resource of its own, "GET /users/:id"; requests that no route serves, also
// those that are answered by 405, share "GET __unmatched__", one for each
// method. Package nethttp, whose options it takes, defines what calls, names, failures and refusals
// are.
//
// Handlers return errors, which echo turns into responses later. An error counts as the status that
// echo turns it into: one that is not an echo.HTTPError is a 500. A handler may return the refusal
// of a call of its own: it is answered as one, and is no failure. The middleware is for Use, not
// for Pre, where no route is known yet.
package penstockecho

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Middleware guards the routes of an Echo or a Group.
func Middleware(opts ...nethttp.Option) echo.MiddlewareFunc {
	g := nethttp.NewGuard(opts...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r, response := c.Request(), c.Response()
			if g.Looks() {
				for i, name := range c.ParamNames() {
					r.SetPathValue(name, c.ParamValues()[i])
				}
			}
			x, err := g.Begin(response.Writer, r, r.Method, pattern(c))
			if err != nil {
				g.Refuse(response, r, err)
				return nil
			}
			defer x.Close()
			before := response.Writer
			c.SetRequest(x.Request())
			response.Writer = x.Writer()
			err = next(c)
			response.Writer = before
			x.End(status(response, err), err)
			if errors.Is(err, api.ErrBlocked) && !response.Committed {
				g.Refuse(response, r, err)
				return nil
			}
			return err
		}
	}
}

// pattern is the pattern of the route that serves the request, "" if none does. For a request that
// is answered by 405 echo has the path of a route with another method, which the handler shows.
func pattern(c echo.Context) string {
	switch reflect.ValueOf(c.Handler()).Pointer() {
	case reflect.ValueOf(echo.NotFoundHandler).Pointer(), reflect.ValueOf(echo.MethodNotAllowedHandler).Pointer():
		return ""
	}
	return c.Path()
}

// status is the status of the response that echo turns an error into.
func status(r *echo.Response, err error) int {
	if err == nil || r.Committed {
		return r.Status
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		return e.Code
	}
	return http.StatusInternalServerError
}
