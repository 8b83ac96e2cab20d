// Package safelog protects goroutines that log from the program's log handlers: a handler that
// panics neither ends the process nor leaves work half done.
package safelog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// maxText is the maximum length in bytes of a text in a record: an error may contain the response
// of a remote server. Stacks fit.
const maxText = 16 << 10

// New returns a logger that passes its records to l, or to the current slog.Default() if l is nil.
// Texts and errors among their attributes are cut at 16 KiB. If the handler panics, New's logger
// recovers, drops the record, and calls panicked with the reason, unless panicked is nil.
func New(l *slog.Logger, panicked func(reason any)) *slog.Logger {
	h := handler{panicked: panicked}
	if l != nil {
		h.to = l.Handler()
	}
	return slog.New(h)
}

// handler passes records to another one; if to is nil, to the handler of slog.Default().
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

// bounded returns the record with long texts cut.
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
	if len(text) <= maxText {
		return v, false
	}
	return slog.StringValue(fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxText], ""), len(text))), true
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h handler) WithGroup(name string) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

// with returns a handler that passes records to the result of change, or to the same handler as
// before if change panics.
func (h handler) with(change func(slog.Handler) slog.Handler) slog.Handler {
	next := h
	h.shield(func() { next.to = change(h.target()) })
	return next
}
