package penstockconnect_test

import (
	"context"
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
)

// A call waits only as long as its server's WriteTimeout leaves time for a response.
func TestWaitsLeaveTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, g := rpctest.Impatient(t)
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
