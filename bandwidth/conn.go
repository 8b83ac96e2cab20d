package bandwidth

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// Conn returns a connection that reads as a [Reader] and writes as a [Writer]; both directions ask for
// the same unit. c must be a stream, such as TCP: longer datagrams would be split.
//
// Deadlines apply to waiting as well, also if they are set or moved meanwhile, in the time of the
// machine. A Read or Write that is waiting at its deadline ends with [os.ErrDeadlineExceeded], and Close
// ends it with [net.ErrClosed]. These and refusals are wrapped in a *[net.OpError]. When ctx ends, Read and
// Write fail, except that what already reads from c or writes to it doesn't end. The connection has a
// CloseWrite if c has one. Close it, or ctx keeps it alive.
//
// Safe for concurrent use: one Read and one Write run at a time.
func Conn(ctx context.Context, c net.Conn, e api.Admitted, opts ...Option) net.Conn {
	limited := &conn{Conn: c, reading: make(chan struct{}, 1), writing: make(chan struct{}, 1)}
	limited.in = reader{meter: newMeter(ctx, "read", e, opts), inner: c}
	limited.out = writer{meter: newMeter(ctx, "write", e, opts), inner: c}
	limited.in.limit(c, &limited.readBy)
	limited.out.limit(c, &limited.writeBy)
	if half, ok := c.(halfCloser); ok {
		return struct {
			*conn
			halfCloser
		}{limited, half}
	}
	return limited
}

type halfCloser interface{ CloseWrite() error }

type conn struct {
	net.Conn
	readBy, writeBy deadline

	// Each is full while a Read or a Write runs. They are channels because their holders wait for
	// turns: a test in a synctest bubble would hang on a mutex.
	reading, writing chan struct{}
	in               reader // for the holder of reading
	out              writer // for the holder of writing
}

func (c *conn) Read(p []byte) (int, error) {
	c.reading <- struct{}{}
	defer func() { <-c.reading }()
	return c.in.Read(p)
}

// Write lets no other Write in while it waits, so that the chunks of two Writes don't mix. The other one
// has the same deadline.
func (c *conn) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	return c.out.Write(p)
}

func (c *conn) Close() error {
	c.readBy.close()
	c.writeBy.close()
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return c.Conn.SetWriteDeadline(t)
}

// limit makes m wait under a deadline of c.
func (m *meter) limit(c net.Conn, d *deadline) {
	d.parent = m.ctx
	d.ctx, d.end = context.WithCancelCause(m.ctx)
	m.conn, m.deadline = c, d
}

// deadline is a context that ends at a time. The time may change while a caller waits. The context has
// no [context.Context.Deadline], because a throttle would refuse at once whoever can't get its turn by
// then, and a later deadline would come too late.
type deadline struct {
	parent context.Context

	mu      sync.Mutex // guards the fields below it
	ctx     context.Context
	end     context.CancelCauseFunc
	timer   *time.Timer
	version int // counts changes: a timer that rings late is out of date
	closed  bool
}

// over is the cause of the end of a context of a connection, unless its parent has ended: that may have
// any cause.
type over struct{ error }

func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parent.Err() != nil {
		return d.parent // a deadline may have passed before that
	}
	return d.ctx
}

// set ends the context at t, now if that has passed, or never if t is zero. If an earlier deadline has
// ended it, it begins anew.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.stopLocked()
	d.renewLocked()
	if t.IsZero() {
		return
	}
	if left := time.Until(t); left > 0 {
		version := d.version
		d.timer = time.AfterFunc(left, func() { d.pass(version) })
		return
	}
	d.end(over{os.ErrDeadlineExceeded})
}

// pass ends the context, unless the deadline was set once more while the timer rang.
func (d *deadline) pass(version int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version == version {
		d.end(over{os.ErrDeadlineExceeded})
	}
}

// renewLocked replaces a context that an earlier deadline has ended: it would keep that cause.
func (d *deadline) renewLocked() {
	if d.ctx.Err() != nil {
		d.ctx, d.end = context.WithCancelCause(d.parent)
	}
}

func (d *deadline) stopLocked() {
	if d.version++; d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopLocked()
	d.closed = true
	d.renewLocked()
	d.end(over{net.ErrClosed})
}
