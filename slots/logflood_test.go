package slots_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// rawHandler writes records unescaped, as some handlers do.
func rawHandler(out *bytes.Buffer) slog.Handler {
	return counting{slog.DiscardHandler, func(r slog.Record) {
		out.WriteString(r.Message)
		r.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(out, " %s=%s", a.Key, a.Value)
			return true
		})
		out.WriteByte('\n')
	}}
}

// No handler receives characters that control a terminal, even beyond ASCII, or an overlong name.
// known bug 104
func TestBlockLogEscapesAndCutsNames(t *testing.T) {
	for _, name := range []string{
		"next\u0085line", "csi\u009b31m", "right\u202eleft", "line\u2028separator", "zero\u200bwidth", "\x7f", "a\nb", "\xff", "\U000e0001tag",
		strings.Repeat("x", pattern.MaxName), strings.Repeat("\u009b", pattern.MaxName/2), strings.Repeat("订", pattern.MaxName/3),
	} {
		handlers := map[string]func(*bytes.Buffer) slog.Handler{
			"raw":  rawHandler,
			"text": func(out *bytes.Buffer) slog.Handler { return slog.NewTextHandler(out, nil) },
			"JSON": func(out *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(out, nil) },
		}
		for kind, handler := range handlers {
			var out bytes.Buffer
			e := newEngine(t, engine.Config{Logger: slog.New(handler(&out))}, flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Threshold: 0})
			_, err := e.Enter(t.Context(), name, nil)
			require.ErrorIs(t, err, core.ErrBlocked)
			line := strings.TrimSuffix(out.String(), "\n")
			require.True(t, utf8.ValidString(line))
			for _, r := range line {
				require.True(t, unicode.IsPrint(r), "%q of %.20q, %s", r, name, kind)
			}
			assert.Less(t, len(line), 1300, "%.20q, %s", name, kind)
		}
	}
}

// With any number of names, the output of the block log is bounded per second and at Close, and
// every rejection is reported. known bug 122
func TestBlockLogOfAFloodOfNames(t *testing.T) {
	var out bytes.Buffer
	reported, unlisted := int64(0), 0
	raw := rawHandler(&out)
	clock := clocks.NewManual(start)
	e := newEngine(t, engine.Config{Clock: clock, Logger: slog.New(counting{slog.DiscardHandler, func(r slog.Record) {
		reported += count(r)
		if strings.Contains(r.Message, "not listed") {
			unlisted++
		}
		_ = raw.Handle(context.Background(), r)
	}})}, flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Threshold: 0})
	const seconds, names = 3, 5000
	bound := 80 << 10 // the budget, plus a line that begins within it
	for second := range seconds {
		out.Reset()
		for i := range names {
			_, err := e.Enter(t.Context(), fmt.Sprintf("%d %d %s", second, i, strings.Repeat("x", 900)), nil)
			require.ErrorIs(t, err, core.ErrBlocked)
		}
		assert.Less(t, out.Len(), bound, "second %d", second)
		clock.Advance(time.Second)
	}
	out.Reset()
	require.NoError(t, e.Close())
	assert.Less(t, out.Len(), bound, "at Close")
	assert.Equal(t, int64(seconds*names), reported)
	assert.Positive(t, unlisted)
}

// A few rules and names are listed as usual.
func TestBlockLogOfOrdinaryNamesIsNotCut(t *testing.T) {
	var out bytes.Buffer
	clock := clocks.NewManual(start)
	e := newEngine(t, engine.Config{Clock: clock, Logger: slog.New(rawHandler(&out))}, flow.Rule{ID: "all", Resource: ".*", Match: spec.MatchRegex, Threshold: 0})
	for range 4 {
		for i := range 200 {
			_, _ = e.Enter(t.Context(), fmt.Sprintf("GET /customers/%05d/orders", i), nil)
		}
		clock.Advance(time.Second)
	}
	assert.Equal(t, 4*200, strings.Count(out.String(), "\n"))
	assert.NotContains(t, out.String(), "not listed")
}
