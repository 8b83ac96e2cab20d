package penstockconnect_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// A call waits no longer than its server leaves it for an answer.
func TestWaitsLeaveTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := g.LoadRules(api.RuleSet{Flow: []flow.Rule{{
			Resource: ".*", Match: api.MatchRegex, Threshold: 1, Interval: time.Minute, Behavior: flow.Throttle, MaxWait: time.Hour,
		}}}); err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: 10 * time.Second})
		h := handlers(&rpctest.Service{Unary: func(context.Context) error { return nil }}, connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g))))
		began := time.Now()
		for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, unary, strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code)
			assert.Zero(t, time.Since(began))
		}
	})
}
