package nethttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/adapters/internal/response"
)

// writer is the http.ResponseWriter of a guarded handler; it records the status. The types below
// have exactly the optional interfaces of the server's own writer, apart from Unwrap: io.Copy uses
// sendfile only if there is a ReaderFrom, and handlers look for a Flusher before they stream.
type writer struct {
	http.ResponseWriter
	exchange Exchange
	wrote    bool // the status is final
}

// Unwrap is for [http.ResponseController], which also calls it if a writer around this one only
// unwraps. Through the writer below, a handler could flush the response or take over the connection
// unnoticed. So if that writer can be unwrapped, a controlled stands in front of it.
func (w *writer) Unwrap() http.ResponseWriter {
	below, more := w.ResponseWriter.(interface{ Unwrap() http.ResponseWriter })
	if !more {
		return w.ResponseWriter
	}
	for more {
		next := below.Unwrap()
		if _, ok := next.(http.Hijacker); ok {
			return &controlledH{controlled{w}}
		}
		below, more = next.(interface{ Unwrap() http.ResponseWriter })
	}
	return &controlled{w}
}

// controlled is a writer for [http.ResponseController]; controlledH is one whose connection can be
// taken over.
type (
	controlled  struct{ of *writer }
	controlledH struct{ controlled }
)

func (c *controlled) Unwrap() http.ResponseWriter       { return c.of.ResponseWriter }
func (c *controlled) Header() http.Header               { return c.of.Header() }
func (c *controlled) WriteHeader(status int)            { c.of.WriteHeader(status) }
func (c *controlled) Write(b []byte) (int, error)       { return c.of.Write(b) }
func (c *controlled) WriteString(s string) (int, error) { return c.of.WriteString(s) }

// FlushError records the status.
func (c *controlled) FlushError() error {
	err := http.NewResponseController(c.of.ResponseWriter).Flush()
	if err == nil {
		c.of.note(http.StatusOK)
	}
	return err
}

// Hijack ends the call.
func (c *controlledH) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.of.ResponseWriter).Hijack()
	if err == nil {
		c.of.exchange.Release()
	}
	return conn, rw, err
}

// WriteHeader records the status. Those below 200, except 101, come before the final one.
func (w *writer) WriteHeader(status int) {
	w.note(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.note(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString saves a copy if the server's own writer does.
func (w *writer) WriteString(s string) (int, error) {
	w.note(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

func (w *writer) note(status int) {
	if w.wrote || status < http.StatusOK && status != http.StatusSwitchingProtocols {
		return
	}
	w.wrote, w.exchange.status = true, int32(status)
	if status == http.StatusSwitchingProtocols || response.IsEventStream(first(w.Header()["Content-Type"])) {
		w.exchange.LongLived()
	}
}

func (w *writer) flush() {
	w.note(http.StatusOK)
	w.ResponseWriter.(http.Flusher).Flush()
}

func (w *writer) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		w.exchange.Release()
	}
	return conn, rw, err
}

func (w *writer) readFrom(r io.Reader) (int64, error) {
	w.note(http.StatusOK)
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

// The optional interfaces by their letters: Flusher, Hijacker, ReaderFrom, Pusher. A server's
// HTTP/1 writer has the first three, an HTTP/2 writer the first and the last.
type (
	writerF   struct{ writer }
	writerH   struct{ writer }
	writerR   struct{ writer }
	writerFH  struct{ writer }
	writerFR  struct{ writer }
	writerHR  struct{ writer }
	writerFHR struct{ writer }
	writerFP  struct{ writer }
)

func (w *writerF) Flush()   { w.flush() }
func (w *writerFH) Flush()  { w.flush() }
func (w *writerFR) Flush()  { w.flush() }
func (w *writerFHR) Flush() { w.flush() }
func (w *writerFP) Flush()  { w.flush() }

func (w *writerH) Hijack() (net.Conn, *bufio.ReadWriter, error)   { return w.hijack() }
func (w *writerFH) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return w.hijack() }
func (w *writerHR) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return w.hijack() }
func (w *writerFHR) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w *writerR) ReadFrom(r io.Reader) (int64, error)   { return w.readFrom(r) }
func (w *writerFR) ReadFrom(r io.Reader) (int64, error)  { return w.readFrom(r) }
func (w *writerHR) ReadFrom(r io.Reader) (int64, error)  { return w.readFrom(r) }
func (w *writerFHR) ReadFrom(r io.Reader) (int64, error) { return w.readFrom(r) }

// Push calls Push of the server's writer.
func (w *writerFP) Push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts)
}

// newExchange returns an exchange whose writer has the interfaces of w: both are one object.
func newExchange(w http.ResponseWriter) *Exchange {
	var own *writer
	var seen http.ResponseWriter
	_, f := w.(http.Flusher)
	_, h := w.(http.Hijacker)
	_, r := w.(io.ReaderFrom)
	_, p := w.(http.Pusher)
	switch {
	case f && h && r:
		x := new(writerFHR)
		own, seen = &x.writer, x
	case f && h:
		x := new(writerFH)
		own, seen = &x.writer, x
	case f && r:
		x := new(writerFR)
		own, seen = &x.writer, x
	case h && r:
		x := new(writerHR)
		own, seen = &x.writer, x
	case f && p:
		x := new(writerFP)
		own, seen = &x.writer, x
	case f:
		x := new(writerF)
		own, seen = &x.writer, x
	case h:
		x := new(writerH)
		own, seen = &x.writer, x
	case r:
		x := new(writerR)
		own, seen = &x.writer, x
	default:
		own = new(writer)
		seen = own
	}
	own.ResponseWriter, own.exchange.writer = w, seen
	return &own.exchange
}
