package penstockfiber

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// route is the App's route that serves a request ("" if none), with the values of its wildcards.
// Its method is the method in its name: a route for GET serves HEAD too.
type route struct {
	method, pattern string
	params          []param
}

type param struct{ name, value string }

// router finds the route that will serve a request. fiber reports the route only to its handlers,
// and a middleware runs before them. So router keeps a twin of the App with the same routes, which
// reports the match.
type router struct{ twin atomic.Pointer[twin] }

type twin struct {
	of      *fiber.App
	count   uint32          // handlers of the App when the twin was made
	gets    map[string]bool // the patterns of routes for GET
	serve   fasthttp.RequestHandler
	lookups sync.Pool // holds *lookup
}

// lookup is a request to the twin.
type lookup struct {
	ctx    fasthttp.RequestCtx
	params bool // the caller wants path values
	found  route
}

type lookupKey struct{}

// find returns the route of a request, with the values of its wildcards if params is set.
func (r *router) find(c fiber.Ctx, params bool) route {
	if c.Matched() { // the middleware belongs to a single route
		at := found(c, c.Method(), c.FullPath(), params)
		if at.method == fiber.MethodHead && r.twinOf(c.App()).gets[at.pattern] {
			at.method = fiber.MethodGet
		}
		return at
	}
	t := r.twinOf(c.App())
	l := t.lookups.Get().(*lookup)
	defer t.lookups.Put(l)
	l.params, l.found = params, route{method: c.Method()}
	l.ctx.Request.Header.SetMethod(c.Method())
	l.ctx.URI().SetPathBytes(c.Request().URI().PathOriginal())
	t.serve(&l.ctx)
	return l.found
}

func (r *router) twinOf(app *fiber.App) *twin {
	t := r.twin.Load()
	if t == nil || t.of != app || t.count != app.HandlersCount() {
		t = newTwin(app)
		r.twin.Store(t) // concurrent stores are both right
	}
	return t
}

func newTwin(of *fiber.App) *twin {
	like := of.Config()
	app := fiber.New(fiber.Config{
		CaseSensitive: like.CaseSensitive, StrictRouting: like.StrictRouting, UnescapePath: like.UnescapePath,
		RequestMethods: like.RequestMethods, RegexHandler: like.RegexHandler, DisableHeadAutoRegister: true,
		ErrorHandler: func(c fiber.Ctx, _ error) error {
			c.Response().Reset()
			return nil
		},
	})
	routes, gets := of.GetRoutes(true), make(map[string]bool)
	for _, r := range routes {
		if r.Method == fiber.MethodGet {
			gets[r.Path] = true
		}
	}
	for _, r := range routes {
		method := r.Method
		if method == fiber.MethodHead && gets[r.Path] {
			method = fiber.MethodGet
		}
		app.Add([]string{r.Method}, r.Path, func(c fiber.Ctx) error {
			l := c.RequestCtx().UserValue(lookupKey{}).(*lookup)
			l.found = found(c, method, r.Path, l.params)
			return nil
		})
	}
	t := &twin{of: of, count: of.HandlersCount(), gets: gets, serve: app.Handler()}
	t.lookups.New = func() any {
		l := new(lookup)
		l.ctx.Init(new(fasthttp.Request), nil, nil)
		l.ctx.SetUserValue(lookupKey{}, l)
		return l
	}
	return t
}

// found returns the route that c has reached.
func found(c fiber.Ctx, method, pattern string, params bool) route {
	at := route{method: method, pattern: pattern}
	if params {
		for _, name := range c.Route().Params {
			at.params = append(at.params, param{name, strings.Clone(c.Params(name))})
		}
	}
	return at
}
