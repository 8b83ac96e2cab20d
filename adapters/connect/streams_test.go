package penstockconnect_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

const (
	upload = "/test.v1.Service/Upload"
	both   = "/test.v1.Service/Both"
)

// guard returns a guard with these rules that lives until the test ends.
func guard(t *testing.T, set api.RuleSet) *api.Guard {
	g, err := api.New(api.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	require.NoError(t, g.LoadRules(set))
	return g
}

// dial returns a client that sends bytes to a procedure.
func dial(t *testing.T, procedure string, h *connect.Handler, opts ...connect.ClientOption) *connect.Client[wrapperspb.BytesValue, emptypb.Empty] {
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return connect.NewClient[wrapperspb.BytesValue, emptypb.Empty](srv.Client(), srv.URL+procedure, opts...)
}

func uploads(opts ...connect.HandlerOption) *connect.Handler {
	return connect.NewClientStreamHandler(upload,
		func(_ context.Context, from *connect.ClientStream[wrapperspb.BytesValue]) (*connect.Response[emptypb.Empty], error) {
			for from.Receive() {
			}
			return connect.NewResponse(&emptypb.Empty{}), from.Err()
		}, opts...)
}

func echoes(opts ...connect.HandlerOption) *connect.Handler {
	return connect.NewBidiStreamHandler(both, func(_ context.Context, s *connect.BidiStream[wrapperspb.BytesValue, emptypb.Empty]) error {
		for {
			if _, err := s.Receive(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.Send(&emptypb.Empty{}); err != nil {
				return err
			}
		}
	}, opts...)
}

// counted checks the counts of a resource.
func counted(t *testing.T, g *api.Guard, resource string, done, failed, inFlight int64) {
	t.Helper()
	n, _ := g.Tree().Resource(resource)
	assert.Equal(t, [3]int64{done, failed, inFlight}, [3]int64{n.Lifetime.Complete, n.Lifetime.Exception, n.InFlight}, resource)
}

// A stream of requests lasts until its response arrives, regardless of what is closed before.
func TestClientStreams(t *testing.T) {
	g := guard(t, api.RuleSet{})
	stream := dial(t, upload, uploads(), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)))).CallClientStream(t.Context())
	for range 3 {
		require.NoError(t, stream.Send(&wrapperspb.BytesValue{}))
	}
	conn, err := stream.Conn()
	require.NoError(t, err)
	require.NoError(t, conn.CloseRequest())
	counted(t, g, upload, 0, 0, 1)
	_, err = stream.CloseAndReceive()
	require.NoError(t, err)
	counted(t, g, upload, 1, 0, 0)
}

func TestBidiStreams(t *testing.T) {
	g := guard(t, api.RuleSet{})
	stream := dial(t, both, echoes(), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)))).CallBidiStream(t.Context())
	require.NoError(t, stream.Send(&wrapperspb.BytesValue{}))
	_, err := stream.Receive()
	require.NoError(t, err)
	require.NoError(t, stream.CloseRequest())
	counted(t, g, both, 0, 0, 1)
	_, err = stream.Receive()
	require.ErrorIs(t, err, io.EOF)
	counted(t, g, both, 1, 0, 0)
	require.NoError(t, stream.CloseResponse())
	counted(t, g, both, 1, 0, 0)
}

// A message that can't be sent ends the call.
func TestAStreamEndsAtAnErrorOfSend(t *testing.T) {
	g := guard(t, api.RuleSet{})
	stream := dial(t, both, echoes(), connect.WithSendMaxBytes(1), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)))).
		CallBidiStream(t.Context())
	err := stream.Send(&wrapperspb.BytesValue{Value: make([]byte, 10)})
	assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), err)
	counted(t, g, both, 1, 1, 0)
	require.NoError(t, stream.CloseRequest())
	require.NoError(t, stream.CloseResponse())
}

// Every step of a refused stream fails with the refusal.
func TestARefusedStream(t *testing.T) {
	g := guard(t, api.RuleSet{Flow: []flow.Rule{{Resource: ".*", Match: api.MatchRegex, Threshold: 0}}})
	stream := dial(t, both, echoes(), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)))).CallBidiStream(t.Context())
	assert.Equal(t, both, stream.Spec().Procedure)
	assert.Empty(t, stream.Peer())
	stream.RequestHeader().Set("A", "b")
	_, received := stream.Receive()
	for _, err := range []error{stream.Send(&wrapperspb.BytesValue{}), received, stream.CloseRequest(), stream.CloseResponse()} {
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
	}
	assert.Empty(t, stream.ResponseHeader())
	assert.Empty(t, stream.ResponseTrailer())
}

// An interceptor below that panics while a stream is opened leaks no entry.
func TestAStreamThatPanicsWhenItIsOpened(t *testing.T) {
	g := guard(t, api.RuleSet{})
	client := dial(t, both, echoes(), connect.WithInterceptors(penstockconnect.Interceptor(penstockconnect.On(g)), panicking{}))
	assert.PanicsWithValue(t, "as it says", func() { client.CallBidiStream(t.Context()) })
	counted(t, g, both, 1, 1, 0)
}

type panicking struct{ connect.Interceptor }

func (panicking) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }
func (panicking) WrapStreamingClient(connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(context.Context, connect.Spec) connect.StreamingClientConn { panic("as it says") }
}
