package safelog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/safelog"
)

// bad is a handler whose named methods panic.
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
		log := safelog.New(slog.New(bad{plain, in}), func(reason any) { reasons = append(reasons, reason) })
		assert.NotPanics(t, func() {
			log.Info("one")
			log.With("of", "a").WithGroup("g").Info("two", "k", "v")
		}, in)
		assert.Equal(t, want, text.String(), in)
		assert.Equal(t, in != "", len(reasons) > 0, in)
	}
}

// A log line is bounded, regardless of the response of a remote server.
func TestTextsAreBounded(t *testing.T) {
	var text bytes.Buffer
	log := safelog.New(slog.New(slog.NewTextHandler(&text, nil)), nil)
	for _, v := range []any{strings.Repeat("x", 9<<20), errors.New(strings.Repeat("x", 9<<20)), fmt.Errorf("%w", errors.New(strings.Repeat("ü", 9<<20)))} {
		text.Reset()
		log.Error("answered", "before", 1, "error", v, "after", "as it is")
		assert.Less(t, text.Len(), 16<<10+200)
		assert.Contains(t, text.String(), "bytes)\"")
		assert.Contains(t, text.String(), "before=1 ")
		assert.Contains(t, text.String(), ` after="as it is"`)
	}
}

// Without a logger, New uses the current default, even if that was made by New.
func TestTheDefault(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	log := safelog.New(nil, nil)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	log.Info("here")
	assert.Contains(t, text.String(), "here")
	slog.SetDefault(slog.New(bad{slog.DiscardHandler, "handle"}))
	assert.NotPanics(t, func() { log.Error("lost") })
	slog.SetDefault(log)
	assert.NotPanics(t, func() { log.Info("to nobody") })
}
