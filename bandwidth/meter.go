package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/penstock-go/penstock/api"
)

// chunk is the most that a stream asks for at once: 1.3 ms at 100 Mbit/s. Larger chunks would share a
// limit less evenly, and smaller ones would ask more often than connections read and write.
const chunk = 16 << 10

// meter asks for the bytes of one direction of a stream.
type meter struct {
	ctx     context.Context
	op      string // "read" or "write"
	call    api.Admitted
	unit    string
	granted int // bytes that were granted and not transferred

	conn     net.Conn  // nil if the stream is no connection
	deadline *deadline // likewise
}

func newMeter(ctx context.Context, op string, call api.Admitted, opts []Option) meter {
	if ctx == nil {
		ctx = context.Background()
	}
	m := meter{ctx: ctx, op: op, call: call, unit: "bytes"}
	for _, o := range opts {
		if o.unit != "" {
			m.unit = o.unit
		}
	}
	return m
}

// ask asks for n bytes, and waits for their turn. It fails if the context has ended, even if there is
// no limit. For no bytes it only looks at the context.
func (m *meter) ask(n int) error {
	ctx := m.ctx
	if m.deadline != nil {
		ctx = m.deadline.context()
	}
	if err := ctx.Err(); err != nil {
		return m.failed(ctx, err)
	}
	if more := n - m.granted; more > 0 {
		if err := m.call.More(ctx, m.unit, int64(more)); err != nil {
			return m.failed(ctx, err)
		}
		m.granted = n
	}
	m.granted -= n
	return nil
}

// failed returns the error of a stream whose More returned err.
func (m *meter) failed(ctx context.Context, err error) error {
	ended := ctx.Err()
	switch own, ok := errors.AsType[over](context.Cause(ctx)); {
	case ended == nil:
	case ok:
		err = own.error
	case !errors.Is(err, ended): // there was no time left to wait
		err = fmt.Errorf("%w (%w)", err, ended)
	}
	if m.conn == nil {
		return fmt.Errorf("bandwidth: %s: %w", m.op, err)
	}
	failed := &net.OpError{Op: m.op, Addr: m.conn.RemoteAddr(), Err: err}
	if local := m.conn.LocalAddr(); local != nil {
		failed.Net, failed.Source = local.Network(), local
	}
	return failed
}
