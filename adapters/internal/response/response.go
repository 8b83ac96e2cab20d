// Package response has what adapters of HTTP share: a writer for frameworks whose responses are none
// of net/http, and what requests and responses say of themselves.
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

// Writer is such a response for code that knows those of net/http. It is for one goroutine.
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
	// Whole says that whoever writes may look at the headers that are set already.
	Whole  bool
	header http.Header
	before http.Header // as they were when they were asked for
	wrote  bool
}

// Header are the headers that are to be set, and if Whole those that are.
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

// OtherMethod replaces methods that HTTP does not know, since clients make them up.
const OtherMethod = "_OTHER"

// Method returns the method if HTTP knows it, else [OtherMethod]. "" is GET, as in requests of clients.
func Method(m string) string {
	if m == "" {
		return http.MethodGet
	}
	if i := slices.Index(methods, m); i >= 0 {
		return methods[i] // m may be a part of the whole request
	}
	return OtherMethod
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// TimeToWrite is how long a server of net/http leaves a call from its beginning, so that its response can
// still be written: its WriteTimeout but for a tenth, which is at most a second, and at least 50 ms of
// 100 ms or more. It is not known of contexts of others, and of servers without one.
func TimeToWrite(ctx context.Context) (left time.Duration, known bool) {
	s, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || s.WriteTimeout <= 0 {
		return 0, false
	}
	all := s.WriteTimeout
	return all - min(max(min(all/10, time.Second), 50*time.Millisecond), all/2), true
}

// Carried is a context of a request that carries the framework's own context of it, for values that
// [Carrier] reads, and the server's own address if that is not nil.
type Carried struct {
	context.Context
	By    any
	Local net.Addr
}

type carrierKey struct{}

// Value returns what is carried, or what the context has.
func (c *Carried) Value(key any) any {
	switch {
	case key == carrierKey{}:
		return c.By
	case key == http.LocalAddrContextKey && c.Local != nil:
		return c.Local
	}
	return c.Context.Value(key)
}

// Carrier returns the framework's own context of a request, nil if none is carried.
func Carrier(ctx context.Context) any { return ctx.Value(carrierKey{}) }

// Text is a value as a text that outlives the request, "" for nil.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return strings.Clone(v) // perhaps of a buffer
	}
	return fmt.Sprint(value)
}
