package conformance

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
)

// Nested checks that a guard logs once that a route passes its requests on to its own router, and
// with which pattern. outer returns a guarded server with two GET routes: /plain/{id}, and
// everything below /api/, which inner serves.
func Nested(t *testing.T, outer func(plain, inner http.Handler, opts ...nethttp.Option) http.Handler) {
	t.Helper()
	var log bytes.Buffer
	g, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	served := 0
	serve := func(http.ResponseWriter, *http.Request) { served++ }
	inner := http.NewServeMux()
	inner.HandleFunc("GET /api/users/{id}", serve)
	h := outer(http.HandlerFunc(serve), inner, nethttp.On(g))
	for _, path := range []string{"/plain/1", "/plain/2", "/none", "/api/none", "/api/users/1", "/api/users/2"} {
		if strings.HasSuffix(path, "/users/1") && strings.Contains(log.String(), "router of its own") {
			t.Errorf("the log gives no reason: %s", log.String())
		}
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	if served != 4 {
		t.Errorf("%d requests of 4 got to their handler", served)
	}
	if n := strings.Count(log.String(), "router of its own"); n != 1 || !strings.Contains(log.String(), `inner="GET /api/users/{id}"`) {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}
