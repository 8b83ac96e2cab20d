package penstockredis

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesOfGoRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		logged := func() string {
			defer text.Reset()
			_, line, _ := strings.Cut(text.String(), "level=")
			return line
		}
		l := &lines{log: slog.New(slog.NewTextHandler(&text, nil))}
		l.Printf(t.Context(), "connection %d: %v\n", 7, "refused")
		assert.Equal(t, "WARN msg=\"penstock: go-redis\" line=\"connection 7: refused\"\n", logged())
		l.Printf(t.Context(), "again")
		l.Printf(t.Context(), "and again")
		assert.Empty(t, logged())
		time.Sleep(linePause)
		l.Printf(t.Context(), "%s", strings.Repeat("x\n", 10_000))
		line := logged()
		assert.Less(t, len(line), 800)
		assert.Contains(t, line, "leftOut=2")
		time.Sleep(linePause)
		l.Printf(t.Context(), "later")
		assert.NotContains(t, logged(), "leftOut")
	})
}

// The lines of go-redis go to the log.
func TestLogTo(t *testing.T) {
	s, err := Open("redis://127.0.0.1:1/")
	require.NoError(t, err)
	defer s.Close()
	defer s.LogTo(slog.New(slog.DiscardHandler))
	var lines counted
	s.LogTo(slog.New(slog.NewTextHandler(&lines, nil)))
	s.client.Pipeline().Expire(t.Context(), "key", time.Microsecond) // go-redis warns of it; never sent
	assert.Positive(t, lines.Load())
}

// counted counts the lines of a log.
type counted struct{ atomic.Int64 }

func (c *counted) Write(b []byte) (int, error) {
	c.Add(1)
	return len(b), nil
}
