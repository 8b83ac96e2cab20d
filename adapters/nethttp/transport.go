package nethttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/netname"
)

// Transport guards the requests of a client: next makes those that no rule refuses;
// http.DefaultTransport if it is nil. The resource of a request is its method and host, as
// "GET api.example.com", unless [Resource] or [PerHost] says otherwise; its calls are outbound. However the host
// is spelled, its name is in small letters, without a final dot and without the scheme's default port.
//
// A refusal is the error of the client's method: errors.As finds the *api.BlockError below
// the *url.Error, and errors.Is api.ErrBlocked. A call lasts until the response's body has
// been read or closed, as its connection does. Breakers count an error as a failure, a status of 500
// and above, and 429; they leave out a request that was canceled. The err that [Failure] gets is the
// transport's, or that of reading the body.
//
// Options about responses to clients have no meaning here.
func Transport(next http.RoundTripper, opts ...Option) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	g := NewGuard(opts...)
	return &transport{next: next, guard: g}
}

type transport struct {
	next  http.RoundTripper
	guard *Guard
}

// CloseIdleConnections is for the client's method of that name.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip makes the request, or closes its body and returns the refusal.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e, guarded, err := t.guard.entry(r, r.Method, netname.HostOf(r.URL.Scheme, r.URL.Host), false)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the refusal says more
		}
		return nil, err
	}
	if !guarded {
		return t.next.RoundTrip(r)
	}
	done := false
	defer func() {
		if !done { // it panics
			e.Fail(errPanicked)
			e.Exit()
		}
	}()
	resp, err := t.next.RoundTrip(r)
	done = true
	if err != nil {
		e.Fail(t.failure(r, 0, err))
		e.Exit()
		return resp, err
	}
	e.Fail(t.failure(r, resp.StatusCode, nil))
	streams := resp.StatusCode == http.StatusSwitchingProtocols || response.IsEventStream(first(resp.Header["Content-Type"]))
	if streams {
		e.SetLongLived()
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		e.Exit()
		return resp, nil
	}
	b := &body{ReadCloser: resp.Body, end: func(err error) {
		if err != nil && !(streams && errors.Is(r.Context().Err(), context.Canceled)) { // which is how streams end
			e.Fail(t.failure(r, resp.StatusCode, err))
		}
		e.Exit()
	}}
	resp.Body = b
	if both, ok := b.ReadCloser.(io.ReadWriteCloser); ok { // of a protocol that was switched to
		resp.Body = &duplexBody{b, both}
	}
	return resp, nil
}

// failure returns the error for [api.Admitted.Fail], nil if the request did not fail. Fail itself checks
// whether it was canceled.
func (t *transport) failure(r *http.Request, status int, err error) error {
	switch {
	case refusal.Of(err).Reason != refusal.None: // of a transport below
		return api.ErrBlocked
	case t.guard.failure != nil:
		if !t.guard.failure(r, status, err) {
			return nil
		}
		return api.Certain(outcome(status, err))
	case errors.Is(err, context.Canceled) && r.Context().Err() == nil: // of something else
		return nil
	case err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return nil
	}
	return outcome(status, err)
}

func outcome(status int, err error) error {
	if err != nil {
		return err
	}
	return StatusError(status)
}

// body ends the call when it has been read, or is closed.
type body struct {
	io.ReadCloser
	end func(err error) // may be called again
}

func (b *body) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.end(nil)
	default:
		b.end(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end(nil)
	return b.ReadCloser.Close()
}

// duplexBody is a body that can be written to.
type duplexBody struct {
	*body
	to io.Writer
}

func (b *duplexBody) Write(p []byte) (int, error) { return b.to.Write(p) }
