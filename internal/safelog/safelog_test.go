package safelog

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

// bad is a handler of which everything panics that is named.
type bad struct {
	slog.Handler
	in string
}

func (b bad) fail(in string) {
	if in == b.in {
		panic(in)
	}
}

func (b bad) Enabled(ctx context.Context, l slog.Level) bool {
	b.fail("enabled")
	return b.Handler.Enabled(ctx, l)
}

func (b bad) Handle(ctx context.Context, r slog.Record) error {
	b.fail("handle")
	return b.Handler.Handle(ctx, r)
}

func (b bad) WithAttrs(attrs []slog.Attr) slog.Handler {
	b.fail("attrs")
	return bad{b.Handler.WithAttrs(attrs), b.in}
}

func (b bad) WithGroup(name string) slog.Handler {
	b.fail("group")
	return bad{b.Handler.WithGroup(name), b.in}
}

func TestHandlersThatPanic(t *testing.T) {
	for in, want := range map[string]string{
		"":        "level=INFO msg=one\nlevel=INFO msg=two of=a g.k=v\n",
		"enabled": "",
		"handle":  "",
		"attrs":   "level=INFO msg=one\nlevel=INFO msg=two g.k=v\n",
		"group":   "level=INFO msg=one\nlevel=INFO msg=two of=a k=v\n",
	} {
		var text bytes.Buffer
		var reasons []any
		plain := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		log := New(slog.New(bad{plain, in}), func(reason any) { reasons = append(reasons, reason) })
		assert.NotPanics(t, func() {
			log.Info("one")
			log.With("of", "a").WithGroup("g").Info("two", "k", "v")
		}, in)
		assert.Equal(t, want, text.String(), in)
		assert.Equal(t, in != "", len(reasons) > 0, in)
	}
}

// Without a logger the default is that of the time, even where that is ours.
func TestTheDefault(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	log := New(nil, nil)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	log.Info("here")
	assert.Contains(t, text.String(), "here")
	slog.SetDefault(slog.New(bad{slog.DiscardHandler, "handle"}))
	assert.NotPanics(t, func() { log.Error("lost") })
	slog.SetDefault(log)
	assert.NotPanics(t, func() { log.Info("to nobody") })
}
