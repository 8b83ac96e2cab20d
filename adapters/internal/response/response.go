// Package response holds the common parts of HTTP adapters: a writer for frameworks whose responses
// aren't net/http's, and helpers about requests and responses.
package response

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Writer adapts such a response to http.ResponseWriter. It is not safe for concurrent use.
type Writer struct {
	To interface {
		SetStatusCode(status int)
		AppendBody(b []byte)
	}
	HeaderOf interface { // the headers of To
		Del(name string)
		Add(name, value string)
		VisitAll(f func(name, value []byte))
	}
	// Whole means that the code that writes may look at headers that are set already.
	Whole  bool
	header http.Header
	before http.Header // a copy from the first call of Header
	wrote  bool
}

// Header returns the headers to set, if Whole is set together with those already set.
func (w *Writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
		if w.Whole {
			w.HeaderOf.VisitAll(func(name, value []byte) { w.header.Add(string(name), string(value)) })
			w.before = w.header.Clone()
		}
	}
	return w.header
}

// WriteHeader sets the headers, except the length, which the framework knows.
func (w *Writer) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	w.To.SetStatusCode(status)
	w.setHeaders()
}

// Apply sets the headers so far, of a response that something else will write.
func (w *Writer) Apply() {
	if w.header != nil {
		w.setHeaders()
		w.header, w.before = nil, nil
	}
}

func (w *Writer) setHeaders() {
	for name := range w.before {
		if _, stays := w.header[name]; !stays {
			w.HeaderOf.Del(name)
		}
	}
	for name, values := range w.header {
		if name == "Content-Length" || slices.Equal(values, w.before[name]) {
			continue
		}
		w.HeaderOf.Del(name)
		for _, v := range values {
			w.HeaderOf.Add(name, v)
		}
	}
}

// Write appends to the body.
func (w *Writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.To.AppendBody(b)
	return len(b), nil
}

// IsEventStream reports whether a content type is that of server-sent events.
func IsEventStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// OtherMethod replaces methods unknown to HTTP, since clients make them up.
const OtherMethod = "_OTHER"

// Method returns the method if HTTP knows it, else [OtherMethod]. "" means GET, as in requests of
// clients.
func Method(m string) string {
	if m == "" {
		return http.MethodGet
	}
	if i := slices.Index(methods, m); i >= 0 {
		return methods[i] // m may share memory with the whole request
	}
	return OtherMethod
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// TimeToWrite returns how long a net/http server leaves a call from its beginning, so that its
// response can still be written: its WriteTimeout minus a tenth, at most a second, and at least 50
// ms for timeouts of 100 ms or more. known is false without a WriteTimeout, and for contexts of
// other servers.
func TimeToWrite(ctx context.Context) (left time.Duration, known bool) {
	s, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || s.WriteTimeout <= 0 {
		return 0, false
	}
	all := s.WriteTimeout
	return all - min(max(min(all/10, time.Second), 50*time.Millisecond), all/2), true
}

// Carried is a request's context that carries the framework's own context, for values that read
// [Carrier], and the server's own address unless nil.
type Carried struct {
	context.Context
	By    any
	Local net.Addr
}

type carrierKey struct{}

// Value returns a carried value, or the context's.
func (c *Carried) Value(key any) any {
	switch {
	case key == carrierKey{}:
		return c.By
	case key == http.LocalAddrContextKey && c.Local != nil:
		return c.Local
	}
	return c.Context.Value(key)
}

// Carrier returns the framework's own context for a request, or nil if none is carried.
func Carrier(ctx context.Context) any { return ctx.Value(carrierKey{}) }

// Text returns a value as a text that outlives the request, "" for nil.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return strings.Clone(v) // may share a buffer
	}
	return fmt.Sprint(value)
}
