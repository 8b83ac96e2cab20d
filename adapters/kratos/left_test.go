package penstockkratos_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

// A call waits no longer than the server of net/http below leaves it for an answer.
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
		ctx = transport.NewServerContext(ctx, byGRPC{header{}})
		serve := penstockkratos.Server(penstockkratos.On(g))(func(context.Context, any) (any, error) { return "", nil })
		_, err = serve(ctx, nil)
		require.NoError(t, err)
		began := time.Now()
		_, err = serve(ctx, nil)
		assert.Equal(t, http.StatusTooManyRequests, kerrors.Code(err), err)
		assert.Zero(t, time.Since(began))
	})
}
