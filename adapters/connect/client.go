package penstockconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
)

// WrapStreamingClient guards the streams of a client.
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		c, err := i.enter(ctx, Call{Spec: spec})
		if err != nil {
			return &neverOpened{spec, err}
		}
		if c == nil {
			conn := next(ctx, spec)
			send(ctx, conn.RequestHeader())
			return conn
		}
		s := &clientStream{call: c}
		s.forget = context.AfterFunc(ctx, func() { s.over(ctx.Err()) })
		defer func() {
			if s.StreamingClientConn == nil {
				s.end(rpc.ErrPanicked)
			}
		}()
		s.StreamingClientConn = next(ctx, spec)
		send(ctx, s.RequestHeader())
		return s
	}
}

// clientStream ends its call when the stream ends; see the package's documentation.
type clientStream struct {
	connect.StreamingClientConn
	call   *rpc.Call
	forget func() bool // stops the watch on the context
	once   sync.Once   // only the first end counts
}

// end ends the call.
func (s *clientStream) end(err error) {
	s.forget()
	s.over(err)
}

func (s *clientStream) over(err error) {
	s.once.Do(func() {
		if err != rpc.ErrPanicked { //nolint:errorlint // it is the error itself
			s.call.End(err)
		}
		s.call.Exit()
	})
}

// Send ends the call on an error other than io.EOF; after io.EOF, Receive knows the outcome.
func (s *clientStream) Send(m any) error {
	err := s.StreamingClientConn.Send(m)
	if err != nil && !errors.Is(err, io.EOF) {
		s.end(err)
	}
	return err
}

// Receive ends the call with the error that follows the last response.
func (s *clientStream) Receive(m any) error {
	err := s.StreamingClientConn.Receive(m)
	switch {
	case err == nil:
		s.call.Answered()
	case errors.Is(err, io.EOF):
		s.end(nil)
	default:
		s.end(err)
	}
	return err
}

// CloseResponse ends the call.
func (s *clientStream) CloseResponse() error {
	defer s.end(nil)
	return s.StreamingClientConn.CloseResponse()
}

// neverOpened is a refused stream. Each of its steps fails.
type neverOpened struct {
	spec connect.Spec
	err  error
}

func (n *neverOpened) Spec() connect.Spec           { return n.spec }
func (n *neverOpened) Peer() connect.Peer           { return connect.Peer{} }
func (n *neverOpened) Send(any) error               { return n.err }
func (n *neverOpened) RequestHeader() http.Header   { return http.Header{} }
func (n *neverOpened) CloseRequest() error          { return n.err }
func (n *neverOpened) Receive(any) error            { return n.err }
func (n *neverOpened) ResponseHeader() http.Header  { return http.Header{} }
func (n *neverOpened) ResponseTrailer() http.Header { return http.Header{} }
func (n *neverOpened) CloseResponse() error         { return n.err }
