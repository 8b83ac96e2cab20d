package penstockfiber

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// request returns the copy of a request that the options of package nethttp see; fiber reuses its
// buffers. Unless whole is set, it has only the method and the context.
func request(c fiber.Ctx, at route, whole bool) *http.Request {
	r := &http.Request{Method: c.Method()}
	if !whole {
		return r.WithContext(c.Context())
	}
	from, uri := c.Request(), c.Request().URI()
	r.URL = &url.URL{Path: string(uri.Path()), RawPath: string(uri.PathOriginal()), RawQuery: string(uri.QueryString())}
	r.RequestURI, r.Host = string(from.RequestURI()), string(from.Host())
	r.Proto, r.ProtoMajor, r.ProtoMinor = string(from.Header.Protocol()), 1, 1
	r.RemoteAddr, r.TLS = c.RequestCtx().RemoteAddr().String(), c.RequestCtx().TLSConnectionState()
	r.ContentLength, r.Body, r.Pattern = int64(from.Header.ContentLength()), http.NoBody, at.pattern
	r.Header = make(http.Header)
	for name, value := range from.Header.All() {
		r.Header.Add(string(name), string(value))
	}
	for _, p := range at.params {
		r.SetPathValue(p.name, p.value)
	}
	// as net/http's server does; it tells Unix sockets apart
	return r.WithContext(&response.Carried{Context: c.Context(), By: c, Local: c.RequestCtx().LocalAddr()})
}

// Value reads the value that earlier middleware has stored under the key with c.Locals, as text, or
// "" if nothing is there.
//
//	Middleware(nethttp.Origin(Value("tenant")))
func Value(key string) nethttp.Value {
	return func(r *http.Request) string {
		c, ok := response.Carrier(r.Context()).(fiber.Ctx)
		if !ok {
			return ""
		}
		return response.Text(c.Locals(key))
	}
}

// Param attaches such a value to each call, for hotspot rules that name the parameter.
func Param(name, key string) nethttp.Option { return nethttp.Param(name, Value(key)) }
