// Package safelog keeps what the user's log handlers do away from the goroutines that log: a handler
// that panics ends no process and leaves no work half done.
package safelog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// mostText is the most bytes that a text of a record has: an error may hold what a server of others
// answered. Stacks have room.
const mostText = 16 << 10

// New returns a logger whose records go to l, or to slog.Default() of that time if l is nil. Texts
// and errors among their attributes are cut at 16 KiB. What
// the handler panics with is recovered, the record is lost, and panicked is called with the
// reason, unless it is nil.
func New(l *slog.Logger, panicked func(reason any)) *slog.Logger {
	h := handler{panicked: panicked}
	if l != nil {
		h.to = l.Handler()
	}
	return slog.New(h)
}

// handler passes on to another one; a nil to is that of slog.Default().
type handler struct {
	to       slog.Handler
	panicked func(any)
}

func (h handler) target() slog.Handler {
	if h.to != nil {
		return h.to
	}
	to := slog.Default().Handler()
	if own, ok := to.(handler); ok && own.to == nil { // the program made a logger of ours its default
		return slog.DiscardHandler
	}
	return to
}

// shield runs f, which may panic.
func (h handler) shield(f func()) {
	defer func() {
		if reason := recover(); reason != nil && h.panicked != nil {
			h.panicked(reason)
		}
	}()
	f()
}

func (h handler) Enabled(ctx context.Context, level slog.Level) (on bool) {
	h.shield(func() { on = h.target().Enabled(ctx, level) })
	return on
}

func (h handler) Handle(ctx context.Context, r slog.Record) (err error) {
	h.shield(func() { err = h.target().Handle(ctx, bounded(r)) })
	return err
}

// bounded is the record with no text that is too long.
func bounded(r slog.Record) slog.Record {
	long := false
	r.Attrs(func(a slog.Attr) bool {
		_, cut := boundedValue(a.Value)
		long = long || cut
		return !long
	})
	if !long {
		return r
	}
	shorter := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		a.Value, _ = boundedValue(a.Value)
		shorter.AddAttrs(a)
		return true
	})
	return shorter
}

func boundedValue(v slog.Value) (_ slog.Value, cut bool) {
	text := ""
	switch v.Kind() {
	case slog.KindString:
		text = v.String()
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			text = err.Error()
		}
	}
	if len(text) <= mostText {
		return v, false
	}
	return slog.StringValue(fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:mostText], ""), len(text))), true
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h handler) WithGroup(name string) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

// with passes to what change makes, and to the same as before where that fails.
func (h handler) with(change func(slog.Handler) slog.Handler) slog.Handler {
	next := h
	h.shield(func() { next.to = change(h.target()) })
	return next
}
