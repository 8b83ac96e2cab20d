package penstockredis

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// LogTo redirects go-redis's own log lines from standard error to log, at most one per second; the
// next line has the number of lines left out. go-redis has one logger for all clients of a program,
// so this affects all of them. A Guard calls it for a store that a rule file names.
func (s *Store) LogTo(log *slog.Logger) { redis.SetLogger(&lines{log: log}) }

// lines writes the lines of go-redis to a log.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex // guards the fields below it
	next    time.Time  // earliest time of the next line
	leftOut int64
}

const (
	linePause = time.Second
	lineWidth = 400 // bytes
)

// Printf implements the logger of go-redis, which also calls it on its own goroutines.
func (l *lines) Printf(ctx context.Context, format string, v ...any) {
	now := time.Now()
	l.mu.Lock()
	if now.Before(l.next) {
		l.leftOut++
		l.mu.Unlock()
		return
	}
	leftOut := l.leftOut
	l.next, l.leftOut = now.Add(linePause), 0
	l.mu.Unlock()
	text := fmt.Sprintf(format, v...)
	if len(text) > lineWidth {
		text = strings.ToValidUTF8(text[:lineWidth], "") + "…"
	}
	about := []any{"line", strings.TrimSpace(text)}
	if leftOut > 0 {
		about = append(about, "leftOut", leftOut)
	}
	l.log.WarnContext(ctx, "penstock: go-redis", about...)
}
