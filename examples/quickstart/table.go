package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
)

// console writes whole lines from several goroutines, with a progress line below them.
type console struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	progress int // columns of the progress line
}

func (c *console) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	fmt.Fprintf(c.w, format, args...)
}

func (c *console) showProgress(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	fmt.Fprint(c.w, text)
	c.progress = len(text)
}

func (c *console) erase() {
	if c.progress > 0 {
		fmt.Fprintf(c.w, "\r%*s\r", c.progress, "")
		c.progress = 0
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (c *console) intro(url, page, file string, n, seconds int) {
	c.printf("A server at %s under the %d rules of\n%s.\n\n", url, n, file)
	if seconds > 0 {
		c.printf("It gets more requests than they allow, for %d s; Ctrl-C ends it earlier.\n"+
			"A wait is the time that an admitted call spent in a queue.\n\n", seconds)
		return
	}
	c.printf(`It gets more requests than they allow, until Ctrl-C. The dashboard is at

  %[3]s

In another terminal:

  curl -i %[1]s/hello
      three times: the third is refused, with the time to retry
  curl -i -H "X-API-Key: demo-acme" %[1]s/catalog
      as a caller with its own limit, which the load uses as well
  curl %[1]s/tree
      the counts; also %[1]s/nodes
  curl %[1]s/rules
      the rules in force

Edit %[2]s, say the threshold of orders:
changes take effect within a second, and the table shows them.

`, url, file, page)
}

// watch prints a line each second until the load or ctx ends, and returns the result of the complete
// seconds.
func (c *console) watch(ctx context.Context, l *load, s *shop) result {
	sofar := result{streams: l.streams}
	var before counts
	for n := 1; ; n++ {
		if n%20 == 1 {
			c.printf("%7s %8s %7s %8s %8s %9s %9s\n", "second", "offered", "passed", "blocked", "waiting", "p50 wait", "p99 wait")
		}
		second := l.start.Add(time.Duration(n) * time.Second)
		last := second.Equal(l.end)
		if last {
			// Just before the end, so that the tree shows the past second.
			c.wait(ctx, l, second.Add(-20*time.Millisecond))
			sofar.tree = s.guard.Tree()
		}
		if !c.wait(ctx, l, second) {
			sofar.tree = s.guard.Tree()
			return sofar
		}
		each, all := l.counts()
		now := all.minus(before)
		before = all
		sofar.seconds, sofar.counts = n, each
		p50, p99 := s.waits.take()
		c.printf("%7d %8d %7d %8d %8d %9s %9s\n", n, now.offered, now.passed, now.blocked,
			s.guard.Waiting(), p50.Round(time.Millisecond), p99.Round(time.Millisecond))
		if last {
			return sofar
		}
	}
}

// wait returns true at the given time, or false when ctx ends. On a terminal it shows the progress.
func (c *console) wait(ctx context.Context, l *load, until time.Time) bool {
	for c.terminal && time.Until(until) > 100*time.Millisecond {
		c.showProgress(progress(time.Since(l.start), l.end.Sub(l.start)))
		if !sleepUntil(ctx, time.Now().Add(100*time.Millisecond)) {
			return false
		}
	}
	return sleepUntil(ctx, until)
}

func progress(gone, whole time.Duration) string {
	gone = max(0, gone)
	if whole < 0 { // no end
		return fmt.Sprintf("%7.1f s, until Ctrl-C", gone.Seconds())
	}
	const width = 30
	done := strings.Repeat("=", int(width*gone/whole))
	return fmt.Sprintf("%7.1f s of %.0f [%-*s]", gone.Seconds(), whole.Seconds(), width, done)
}

// reloaded reports a change of the rule file.
func (c *console) reloaded(r api.Reload) {
	switch {
	case r.Err != nil:
		c.printf("! %s\n  The last good rules stay.\n", strings.ReplaceAll(r.Err.Error(), "\n", "\n! "))
	case r.Change.Empty():
		c.printf("* %s was written; no rule changed.\n", r.Source)
	default:
		c.printf("* %s changed:\n    %s\n", r.Source, strings.Join(r.Change.Lines(), "\n    "))
	}
}
