package penstockkratos_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/internal/rpctest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
)

// A call waits only as long as the net/http server below leaves time for a response.
func TestWaitsLeaveTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, g := rpctest.Impatient(t)
		ctx = transport.NewServerContext(ctx, byGRPC{header{}})
		serve := penstockkratos.Server(penstockkratos.On(g))(func(context.Context, any) (any, error) { return "", nil })
		_, err := serve(ctx, nil)
		require.NoError(t, err)
		began := time.Now()
		_, err = serve(ctx, nil)
		assert.Equal(t, http.StatusTooManyRequests, kerrors.Code(err), err)
		assert.Zero(t, time.Since(began))
	})
}
