package bandwidth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/bandwidth"
	"github.com/penstock-go/penstock/flow"
)

// Streams that read and write under one limit share it evenly in every second, and use all of it.
func TestStreamsShareALimit(t *testing.T) {
	for _, tt := range []struct {
		streams int
		rate    float64
	}{{1, 10e6}, {8, 10e6}, {1000, 1e9}} {
		t.Run(fmt.Sprint(tt.streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 3
				g := newGuard(t, throttle(tt.rate))
				ctx, cancel := context.WithCancel(t.Context())
				var done sync.WaitGroup
				all := make([]*counting, tt.streams)
				for i := range all {
					all[i] = &counting{begin: time.Now()}
					e := enter(t, g)
					done.Go(func() {
						if i%2 == 0 {
							_, _ = io.Copy(bandwidth.Writer(ctx, all[i], e), endless{})
						} else {
							_, _ = io.Copy(all[i], bandwidth.Reader(ctx, endless{}, e))
						}
					})
				}
				time.Sleep(seconds * time.Second)
				cancel()
				done.Wait()
				for second := range seconds {
					var sum int
					var of []int
					for _, c := range all {
						of = append(of, c.seconds[second])
						sum += c.seconds[second]
					}
					assert.InEpsilon(t, tt.rate, sum, 0.01)
					assert.GreaterOrEqual(t, float64(slices.Min(of)), 0.95*float64(slices.Max(of)))
				}
			})
		})
	}
}

// A stream whose caller leaves while it waits gives its place to those behind it.
func TestStreamLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, throttle(chunk)) // a chunk per second
		begin := time.Now()
		ended := make([]time.Duration, 4)
		errs := make([]error, len(ended))
		var done sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for i := range ended {
			ctx, e := ctx, enter(t, g)
			if i != 1 {
				ctx = t.Context()
			}
			done.Go(func() {
				_, errs[i] = bandwidth.Writer(ctx, io.Discard, e).Write(make([]byte, chunk))
				ended[i] = time.Since(begin)
			})
			synctest.Wait()
		}
		time.Sleep(500 * time.Millisecond)
		cancel()
		done.Wait()
		assert.Equal(t, []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second}, ended)
		require.ErrorIs(t, errs[1], context.Canceled)
		require.ErrorIs(t, errs[1], api.ErrBlocked)
		errs[1] = nil
		require.NoError(t, errors.Join(errs...))
	})
}

// A stream whose context has a deadline ends in time, with the bytes written until then.
func TestStreamEndsAtADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, throttle(chunk))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		n, err := bandwidth.Writer(ctx, io.Discard, enter(t, g)).Write(make([]byte, 10*chunk))
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Equal(t, 3*chunk, n)
		assert.Equal(t, 2*time.Second, time.Since(begin), "there is no turn before the deadline")
	})
}

// A context that has ended ends a stream, whether or not there is a limit.
func TestStreamOfAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, e := range []api.Admitted{{}, enter(t, newGuard(t, throttle(1e6)))} {
		n, err := bandwidth.Writer(ctx, io.Discard, e).Write([]byte("hello"))
		assert.Zero(t, n)
		require.ErrorIs(t, err, context.Canceled)
		n, err = bandwidth.Reader(ctx, strings.NewReader("hello"), e).Read(make([]byte, 5))
		assert.Zero(t, n)
		require.ErrorIs(t, err, context.Canceled)
	}
}

// Short reads are charged for what they return, and refused bytes are returned later: once, in order,
// and with the error that came with them.
func TestReaderChargesWhatItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, flow.Rule{Resource: "file", Unit: "bytes", Threshold: 10})
		r := bandwidth.Reader(t.Context(), iotest.DataErrReader(&script{[]string{"abcd", "efgh", "ijklmn"}, io.EOF}), enter(t, g))
		buf := make([]byte, 100)
		read := func(size int, want string) error {
			t.Helper()
			n, err := r.Read(buf[:size])
			assert.Equal(t, want, string(buf[:n]))
			return err
		}
		require.NoError(t, read(100, "abcd"))
		require.NoError(t, read(100, "efgh"))
		assert.EqualValues(t, 8, charged(g))
		for range 2 {
			err := read(100, "")
			require.ErrorIs(t, err, api.ErrBlocked)
			var b *api.BlockError
			require.ErrorAs(t, err, &b)
			wait, known := b.RetryAfter()
			require.True(t, known)
			assert.Positive(t, wait)
			assert.ErrorContains(t, err, "bandwidth: read: penstock: ")
		}
		time.Sleep(2 * time.Second)
		require.NoError(t, read(2, "ij"))
		require.ErrorIs(t, read(100, "klmn"), io.EOF)
		require.ErrorIs(t, read(100, ""), io.EOF)
		assert.EqualValues(t, 14, charged(g))
	})
}

// A long read is cut into chunks, and so is a long write.
func TestChunks(t *testing.T) {
	g := newGuard(t)
	n, err := bandwidth.Reader(t.Context(), endless{}, enter(t, g)).Read(make([]byte, 10*chunk))
	require.NoError(t, err)
	assert.Equal(t, chunk, n)
	var sizes []int
	n, err = bandwidth.Writer(t.Context(), writes(func(p []byte) (int, error) {
		sizes = append(sizes, len(p))
		return len(p), nil
	}), enter(t, g)).Write(make([]byte, 2*chunk+1))
	require.NoError(t, err)
	assert.Equal(t, 2*chunk+1, n)
	assert.Equal(t, []int{chunk, chunk, 1}, sizes)
}

type writes func([]byte) (int, error)

func (w writes) Write(p []byte) (int, error) { return w(p) }

// Bytes granted and not written count for the next chunk. The errors of the writer stay.
func TestShortWrites(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "file", Unit: "bytes", Threshold: 30})
	broken := errors.New("broken")
	w := bandwidth.Writer(t.Context(), writes(func(p []byte) (int, error) {
		if len(p) > 6 {
			return 6, broken
		}
		return len(p) / 2, nil
	}), enter(t, g))
	n, err := w.Write(make([]byte, 10))
	assert.Equal(t, 6, n)
	assert.Equal(t, broken, err)
	n, err = w.Write(make([]byte, 4))
	assert.Equal(t, 2, n)
	assert.Equal(t, io.ErrShortWrite, err)
	n, err = w.Write(nil)
	assert.Zero(t, n)
	require.NoError(t, err)
	assert.EqualValues(t, 10, charged(g))
	n, err = w.Write(make([]byte, 20))
	assert.Equal(t, 6, n)
	assert.Equal(t, broken, err)
	assert.EqualValues(t, 28, charged(g), "of the 20, 2 had been granted")
}

// A stream counts in its own unit. It fails once its call has exited, and with an invalid unit.
func TestUnit(t *testing.T) {
	g := newGuard(t, flow.Rule{Resource: "file", Unit: "egress", Threshold: 10})
	e := enter(t, g)
	write := func(opts ...bandwidth.Option) error {
		_, err := bandwidth.Writer(t.Context(), io.Discard, e, opts...).Write(make([]byte, 6))
		return err
	}
	require.NoError(t, write())
	require.NoError(t, write(bandwidth.Unit("egress"), bandwidth.Unit(""), bandwidth.Option{}))
	require.NoError(t, write())
	require.ErrorIs(t, write(bandwidth.Unit("egress")), api.ErrBlocked)
	require.ErrorIs(t, write(bandwidth.Unit("a b")), api.ErrInvalid)
	e.Exit()
	require.ErrorIs(t, write(), api.ErrExited)
	e = api.Admitted{}
	require.NoError(t, write(bandwidth.Unit("egress")))
}

// A server that limits the bodies of its requests and responses: headers and flushes aren't limited.
func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, throttle(chunk))
		e := enter(t, g)
		begin := time.Now()
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = bandwidth.Body(r.Context(), r.Body, e)
			w = bandwidth.ResponseWriter(r.Context(), w, e)
			w.Header().Set("X-A", "b")
			w.WriteHeader(http.StatusAccepted)
			w.(http.Flusher).Flush()
			assert.NoError(t, http.NewResponseController(w).Flush())
			assert.ErrorIs(t, http.NewResponseController(w).SetWriteDeadline(time.Time{}), http.ErrNotSupported)
			_, err := io.Copy(w, r.Body)
			assert.NoError(t, err)
			assert.NoError(t, r.Body.Close())
		})
		rec := httptest.NewRecorder()
		body := &closing{Reader: strings.NewReader(strings.Repeat("x", 2*chunk))}
		handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", body))
		assert.Equal(t, http.StatusAccepted, rec.Code)
		assert.Equal(t, "b", rec.Header().Get("X-A"))
		assert.True(t, rec.Flushed)
		assert.Equal(t, 2*chunk, rec.Body.Len())
		assert.True(t, body.closed)
		assert.Equal(t, 3*time.Second, time.Since(begin), "two chunks in and two out; the first one is free")
		assert.EqualValues(t, 4*chunk, charged(g))
	})
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func BenchmarkWriter(b *testing.B) {
	w := bandwidth.Writer(b.Context(), io.Discard, enter(b, newGuard(b, throttle(1e12))))
	p := make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(p); err != nil {
			b.Fatal(err)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// An error that a reader returns without bytes is passed on, even if the context ends meanwhile, often for
// the same reason: the reader may not return it again.
// known bug 265
func TestErrorAsTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("broken")
	r := bandwidth.Reader(ctx, readFunc(func([]byte) (int, error) { cancel(); return 0, broken }), api.Admitted{})
	_, err := r.Read(make([]byte, 1))
	assert.Equal(t, broken, err)
}

// The error of a context that ended names the context, even if it ended because a connection was closed,
// or because of a deadline elsewhere.
// known bug 266
func TestContextEndsBecauseOfAConnection(t *testing.T) {
	for _, cause := range []error{net.ErrClosed, os.ErrDeadlineExceeded} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := bandwidth.Writer(ctx, io.Discard, api.Admitted{}).Write(make([]byte, 1))
		require.ErrorIs(t, err, context.Canceled)
		inner, _ := net.Pipe()
		c := bandwidth.Conn(ctx, inner, api.Admitted{})
		_, err = c.Write(make([]byte, 1))
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, c.Close())
	}
}
