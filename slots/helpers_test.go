package slots_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Unix(1_700_000_000, 0)

// newGuard returns an engine with the standard chain on a manual clock, and its log. At the end of
// the test no call may hold anything.
func newGuard(t *testing.T, rules ...flow.Rule) (*engine.Engine, *clocks.Manual, *lines) {
	t.Helper()
	clock, log := clocks.NewManual(start), new(lines)
	clock.SetSleep(clocks.SleepRecord)
	e := newEngine(t, engine.Config{Clock: clock, Logger: slog.New(slog.NewTextHandler(log, nil))}, rules...)
	t.Cleanup(func() { assert.Zero(t, e.Failures()) })
	return e, clock, log
}

// lines collects a logger's output, one line per record.
type lines struct{ strings.Builder }

func (l *lines) all() []string {
	text := strings.TrimSuffix(l.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
