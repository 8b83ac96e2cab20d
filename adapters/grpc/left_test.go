package penstockgrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/internal/rpctest"
)

// bare is a server stream with only the methods that an interceptor calls.
type bare struct {
	grpc.ServerStream
	ctx context.Context
}

func (s bare) Context() context.Context { return s.ctx }
func (bare) SetTrailer(metadata.MD)     {}

// A call through grpc.Server.ServeHTTP waits only as long as net/http's WriteTimeout leaves time
// for a response.
func TestWaitsLeaveTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, g := rpctest.Impatient(t)
		unary, stream := penstockgrpc.UnaryServerInterceptor(penstockgrpc.On(g)), penstockgrpc.StreamServerInterceptor(penstockgrpc.On(g))
		for name, call := range map[string]func() error{
			"unary": func() error {
				_, err := unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/Unary"}, func(context.Context, any) (any, error) { return "", nil })
				return err
			},
			"stream": func() error {
				return stream("", bare{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/a.B/Stream"}, func(any, grpc.ServerStream) error { return nil })
			},
		} {
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			began := time.Now()
			if err := call(); status.Code(err) != codes.ResourceExhausted || time.Since(began) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
	})
}
