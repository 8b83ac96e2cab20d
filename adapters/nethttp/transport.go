package nethttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/netname"
)

// Transport guards the requests of a client: next makes the requests that no rule refuses; nil means
// http.DefaultTransport. The resource of a request is its method and host, as "GET
// api.example.com", unless [Resource] or [PerHost] says otherwise; calls are outbound. Hosts are
// normalized: lower case, without a final dot and without the scheme's default port.
//
// A refusal is returned by the client's method: errors.As finds the *api.BlockError below the
// *url.Error, and errors.Is finds api.ErrBlocked. A call lasts until the response's body has been
// read or closed, as its connection does. Breakers count an error as a failure, a status of 500 and
// above, and 429; they leave out a canceled request. [Failure] gets the error of the transport, or
// that of reading the body.
//
// A level that api.WithCriticality has given to the context of a request is sent as the header
// [CriticalityHeader], in place of any that the request has.
//
// Upstream rules learn of 429 and 503 as soon as the headers are there, with the time in Retry-After or
// RateLimit; of those, and of errors, none counts as accepted. Mark another attempt by
// api.WithRetry(r.Context()).
//
// Options about responses to clients have no effect here.
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

// CloseIdleConnections is for http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// RoundTrip makes the request, or closes its body and returns the refusal.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if level, given := api.CriticalityOf(r.Context()); given {
		r = naming(r, level)
	}
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
		if !done { // next or an option panicked
			t.guard.refund(e, r)
			e.Fail(api.Overloaded(errPanicked, 0))
			e.Exit()
		}
	}()
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		t.guard.refund(e, r)
	}
	if err != nil {
		e.Fail(overloaded(t.failure(r, 0, err), err, 0)) // canceled requests don't count
		e.Exit()
		done = true
		return resp, err
	}
	if failure := t.failure(r, resp.StatusCode, nil); overloads(r, resp) {
		e.Fail(overloaded(failure, StatusError(resp.StatusCode), response.RetryAfter(resp.Header)))
	} else {
		e.Fail(failure)
	}
	streams := resp.StatusCode == http.StatusSwitchingProtocols || response.IsEventStream(first(resp.Header["Content-Type"]))
	if streams {
		e.SetLongLived()
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		e.Exit()
		done = true
		return resp, nil
	}
	b := &body{ReadCloser: resp.Body, end: func(err error) {
		if err != nil && !(streams && errors.Is(r.Context().Err(), context.Canceled)) { // the usual end of a stream
			e.Fail(t.failure(r, resp.StatusCode, err))
		}
		e.Exit()
	}}
	resp.Body, done = b, true
	if both, ok := b.ReadCloser.(io.ReadWriteCloser); ok { // of an upgraded protocol
		resp.Body = &duplexBody{b, both}
	}
	return resp, nil
}

// naming returns a copy of a request with a header that names the level.
func naming(r *http.Request, level api.Level) *http.Request {
	c := *r
	if c.Header = r.Header.Clone(); c.Header == nil {
		c.Header = make(http.Header)
	}
	c.Header[CriticalityHeader] = []string{level.String()}
	return &c
}

// failure returns the error for [api.Admitted.Fail], or nil if the request did not fail. Fail
// itself checks whether the request was canceled.
func (t *transport) failure(r *http.Request, status int, err error) error {
	switch {
	case refusal.Of(err).Reason != refusal.None: // from a transport below
		return api.ErrBlocked
	case t.guard.failure != nil:
		if !t.guard.failure(r, status, err) {
			return nil
		}
		return api.Certain(outcome(status, err))
	case errors.Is(err, context.Canceled) && r.Context().Err() == nil: // something else was canceled
		return nil
	case err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return nil
	}
	return outcome(status, err)
}

// overloads reports whether the answer is that of an overloaded server, and of the one that r went to:
// a transport below may have followed a redirect to another.
func overloads(r *http.Request, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	from := resp.Request
	return from == nil || from.Response == nil || from.URL == nil || // otherwise a redirect
		netname.HostOf(from.URL.Scheme, from.URL.Host) == netname.HostOf(r.URL.Scheme, r.URL.Host)
}

// overloaded returns the error for [api.Admitted.Fail] of a request that the server had too much to
// do for, or didn't answer: err, and the failure that it is, if it is one.
func overloaded(failure, err error, retryAfter time.Duration) error {
	if failure == nil {
		failure = api.Ignore(err)
	}
	return api.Overloaded(failure, retryAfter)
}

func outcome(status int, err error) error {
	if err != nil {
		return err
	}
	return StatusError(status)
}

// body ends the call when it has been read or is closed.
type body struct {
	io.ReadCloser
	end func(err error) // safe to call again
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
