package penstockhertz

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/network"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// request returns the copy of a request that the options of package nethttp see; hertz reuses its
// buffers. Unless whole is set, it has only the method and the context.
func request(ctx context.Context, c *app.RequestContext, whole bool) *http.Request {
	r := &http.Request{Method: string(c.Method())}
	if !whole {
		return r.WithContext(ctx)
	}
	from, uri := &c.Request, c.URI()
	r.URL = &url.URL{Path: string(uri.Path()), RawPath: string(uri.PathOriginal()), RawQuery: string(uri.QueryString())}
	r.RequestURI, r.Host = string(from.RequestURI()), string(from.Host())
	r.Proto, r.ProtoMajor, r.ProtoMinor = from.Header.GetProtocol(), 1, 1
	r.RemoteAddr = c.RemoteAddr().String()
	if conn, ok := c.GetConn().(network.ConnTLSer); ok {
		state := conn.ConnectionState()
		r.TLS = &state
	}
	r.ContentLength, r.Body, r.Pattern = int64(from.Header.ContentLength()), http.NoBody, c.FullPath()
	r.Header = make(http.Header)
	from.Header.VisitAll(func(name, value []byte) { r.Header.Add(string(name), string(value)) })
	for _, p := range c.Params {
		r.SetPathValue(p.Key, strings.Clone(p.Value))
	}
	with := &response.Carried{Context: ctx, By: c}
	if conn := c.GetConn(); conn != nil { // as net/http's server does; it tells Unix sockets apart
		with.Local = conn.LocalAddr()
	}
	return r.WithContext(with)
}

// Value reads the value that earlier middleware has stored under the key with c.Set, as text, or ""
// if nothing is there.
//
//	Middleware(nethttp.Origin(Value("tenant")))
func Value(key string) nethttp.Value {
	return func(r *http.Request) string {
		c, ok := response.Carrier(r.Context()).(*app.RequestContext)
		if !ok {
			return ""
		}
		value, _ := c.Get(key)
		return response.Text(value)
	}
}

// Param attaches such a value to each call, for hotspot rules that name the parameter.
func Param(name, key string) nethttp.Option { return nethttp.Param(name, Value(key)) }
