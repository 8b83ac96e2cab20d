package conformance_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// noted is a writer that records the status.
type noted struct {
	http.ResponseWriter
	status int
}

func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Each adapter has one mistake known from adapters of other libraries. The table notices each, in
// at least these cases.
func TestTheTableNoticesBrokenAdapters(t *testing.T) {
	type serve func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler)
	for name, broken := range map[string]struct {
		serve serve
		cases []string
	}{
		"a panic leaks the entry": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			x, err := g.Begin(w, r, r.Method, pattern)
			if err != nil {
				g.Refuse(w, r, err)
				return
			}
			n := &noted{ResponseWriter: w}
			next.ServeHTTP(n, x.Request())
			x.End(n.status, nil)
			x.Close()
		}, []string{"a panic is a failure and leaks nothing", "an abort under a dead client is none"}},
		"resources are raw paths": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, _ string, next http.Handler) {
			g.Serve(w, r, r.URL.Path, next)
		}, []string{"a wildcard is one resource", "paths that no route serves are one resource", "only registered patterns become names"}},
		"resources are what the mux redirects to": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			g.Serve(w, r, pattern, next)
		}, []string{"only registered patterns become names"}},
		"resources are URLs with their query": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			g.Serve(w, r, pattern+"?"+r.URL.RawQuery, next)
		}, []string{"a query is not part of the resource"}},
		"the body is read before it asks": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			g.Serve(w, r, pattern, next)
		}, []string{"a body that is only sent if it is wanted"}},
		"the request's deadline is not its own": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			g.Serve(w, r.WithContext(context.WithoutCancel(r.Context())), pattern, next)
		}, []string{"a deadline that expires while the request waits"}},
		"failures are not reported": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			x, err := g.Begin(w, r, r.Method, pattern)
			if err != nil {
				g.Refuse(w, r, err)
				return
			}
			defer x.Close()
			next.ServeHTTP(w, x.Request())
			x.End(http.StatusOK, nil)
		}, []string{"a status of 500 is a failure", "refused by a breaker", "events arrive one by one, and have no response time"}},
		"nested refusals are failures": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			x, err := g.Begin(w, r, r.Method, pattern)
			if err != nil {
				g.Refuse(w, r, err)
				return
			}
			defer x.Close()
			n := &noted{ResponseWriter: w}
			next.ServeHTTP(n, r)
			x.End(n.status, nil)
		}, []string{"a nested refusal that is reported as 503 is not a failure", "nested calls are counted below the request"}},
		"the call ends before it runs": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			x, err := g.Begin(w, r, r.Method, pattern)
			if err != nil {
				g.Refuse(w, r, err)
				return
			}
			x.End(http.StatusOK, nil)
			x.Close()
			next.ServeHTTP(w, x.Request())
		}, []string{"refused by isolation", "a panic is a failure and leaks nothing"}},
		"refusals are bare": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			x, err := g.Begin(w, r, r.Method, pattern)
			if err != nil {
				http.Error(w, "blocked", http.StatusTooManyRequests)
				return
			}
			x.End(http.StatusOK, nil)
			defer x.Close()
			next.ServeHTTP(w, x.Request())
		}, []string{"refused by flow", "refused by authority", "refused by a system rule"}},
		"the writer has lost what it could": {func(g *nethttp.Guard, w http.ResponseWriter, r *http.Request, pattern string, next http.Handler) {
			g.Serve(struct{ http.ResponseWriter }{w}, r, pattern, next)
		}, []string{"events arrive one by one, and have no response time", "a connection that is taken over ends the call"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := conformance.Server{Handler: func(_ testing.TB, routes []conformance.Route, opts ...nethttp.Option) http.Handler {
				g, mux := nethttp.NewGuard(opts...), http.NewServeMux()
				for _, r := range routes {
					mux.Handle(r.Method+" "+r.Pattern, r.Handler)
				}
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, pattern := mux.Handler(r)
					broken.serve(g, w, r, pattern, mux)
				})
			}}
			for _, want := range broken.cases {
				found := false
				for _, c := range conformance.Cases {
					if found = c.Name == want; found {
						c.Patience = 200 * time.Millisecond
						assert.Error(t, c.Check(t, server), want)
						break
					}
				}
				assert.True(t, found, "there is no case %q", want)
			}
		})
	}
}
