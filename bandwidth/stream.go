package bandwidth

import (
	"context"
	"io"
	"net/http"

	"github.com/penstock-go/penstock/api"
)

// Option changes how a stream asks; see [Unit]. The zero value changes nothing.
type Option struct{ unit string }

// Unit makes the stream ask for its bytes in that unit, instead of "bytes". "" changes nothing.
func Unit(name string) Option { return Option{name} }

// Reader returns a reader that asks e for what it has read from r before it passes it on. A Read reads
// at most 16 KiB, and is charged exactly the bytes that it returns.
//
// A Read that is refused, or whose context ends, returns no bytes; the next Read asks again for those
// that were read, and returns them. Waiting ends with ctx, but reading from r doesn't. A nil ctx is
// [context.Background]; the zero e limits nothing. Not safe for concurrent use.
func Reader(ctx context.Context, r io.Reader, e api.Admitted, opts ...Option) io.Reader {
	return &reader{meter: newMeter(ctx, "read", e, opts), inner: r}
}

// Body is like [Reader], for the body of a request or a response. Close closes body.
func Body(ctx context.Context, body io.ReadCloser, e api.Admitted, opts ...Option) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(ctx, body, e, opts...), body}
}

// Writer returns a writer that asks e for each chunk before it writes it to w. A Write that is refused, or
// whose context ends, returns the number of bytes that were written before. Bytes that were granted and
// that w didn't write are granted to the next chunk.
//
// Waiting ends with ctx, but writing to w doesn't. A nil ctx is [context.Background]; the zero e limits
// nothing. Not safe for concurrent use.
func Writer(ctx context.Context, w io.Writer, e api.Admitted, opts ...Option) io.Writer {
	return &writer{meter: newMeter(ctx, "write", e, opts), inner: w}
}

// ResponseWriter is like [Writer], for the body of a response: header lines aren't counted. It can be
// flushed if w can, and [http.ResponseController] reaches the other methods of w.
func ResponseWriter(ctx context.Context, w http.ResponseWriter, e api.Admitted, opts ...Option) http.ResponseWriter {
	return &responseWriter{ResponseWriter: w, body: writer{meter: newMeter(ctx, "write", e, opts), inner: w}}
}

type reader struct {
	meter
	inner io.Reader
	kept  []byte // read, but not passed on, because a Read was refused
	owed  int    // the bytes of kept that were not granted
	err   error  // the error that came with kept
}

func (r *reader) Read(p []byte) (n int, err error) {
	if len(r.kept) > 0 {
		return r.readKept(p)
	}
	if err := r.ask(0); err != nil {
		return 0, err
	}
	n, err = r.inner.Read(p[:min(len(p), chunk)])
	if n == 0 {
		return 0, err // even if the context has ended: the error may not come again
	}
	if refused := r.ask(n); refused != nil {
		r.kept, r.owed, r.err = append(r.kept[:0], p[:n]...), n, err
		return 0, refused
	}
	return n, err
}

func (r *reader) readKept(p []byte) (n int, err error) {
	if err := r.ask(r.owed); err != nil {
		return 0, err
	}
	r.owed = 0
	n = copy(p, r.kept)
	if r.kept = r.kept[n:]; len(r.kept) == 0 {
		err, r.err, r.kept = r.err, nil, nil
	}
	return n, err
}

type writer struct {
	meter
	inner io.Writer
}

func (w *writer) Write(p []byte) (written int, err error) {
	for {
		part := p[written:min(len(p), written+chunk)]
		if err := w.ask(len(part)); err != nil {
			return written, err
		}
		n, err := w.inner.Write(part)
		w.granted += len(part) - n
		written += n
		if err == nil && n < len(part) {
			err = io.ErrShortWrite
		}
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

type responseWriter struct {
	http.ResponseWriter
	body writer
}

func (w *responseWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// Flush is for handlers that look for [http.Flusher].
func (w *responseWriter) Flush() { _ = w.FlushError() }

func (w *responseWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
