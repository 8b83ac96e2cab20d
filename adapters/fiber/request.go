package penstockfiber

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// request is what the options of package nethttp see of a request: a copy, since fiber uses its
// buffers again. Where none of them looks, it has no more than the method and the context.
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
	return r.WithContext(c.Context())
}

// writer is a response of fiber for code that knows those of net/http.
type writer struct {
	to     *fasthttp.Response
	header http.Header
	wrote  bool
}

// Header are the headers that are to be set.
func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader sets the headers, but for the length, which fasthttp knows.
func (w *writer) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	w.to.SetStatusCode(status)
	for name, values := range w.header {
		if name == fiber.HeaderContentLength {
			continue
		}
		w.to.Header.Del(name)
		for _, v := range values {
			w.to.Header.Add(name, v)
		}
	}
}

// Write appends to the body.
func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.to.AppendBody(b)
	return len(b), nil
}

func isEventStream(r *fasthttp.Response) bool {
	kind, _, _ := bytes.Cut(r.Header.ContentType(), []byte(";"))
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte("text/event-stream"))
}
