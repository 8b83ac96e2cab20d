package rpctest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// Impatient returns the context of requests to a net/http server that leaves ten seconds for a
// response, and a Guard that makes every second call of a name wait a minute, to test that such a
// call is refused immediately. Use it in a synctest bubble.
func Impatient(t *testing.T) (context.Context, *api.Guard) {
	t.Helper()
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	if err := g.LoadRules(api.RuleSet{Flow: []flow.Rule{{
		Resource: ".*", Match: api.MatchRegex, Threshold: 1, Interval: time.Minute, Behavior: flow.Throttle, MaxWait: time.Hour,
	}}}); err != nil {
		t.Fatal(err)
	}
	return context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: 10 * time.Second}), g
}
