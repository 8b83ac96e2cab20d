package slots_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/books"
	"github.com/penstock-go/penstock/node"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Unix(1_700_000_000, 0)

// newGuard returns an engine with the standard chain on a clock that stands still,
// and what it logs. At the end of the test it must hold nothing.
func newGuard(t *testing.T, rules ...flow.Rule) (*core.Engine, *core.ManualClock, *lines) {
	t.Helper()
	clock, log := core.NewManualClock(start), new(lines)
	clock.SetSleep(core.SleepRecord)
	e := newEngine(t, core.Config{Clock: clock, Logger: slog.New(slog.NewTextHandler(log, nil))}, rules...)
	t.Cleanup(func() {
		assert.Zero(t, e.Waiting())
		assert.Zero(t, e.Failures())
		eachNode(e, func(name string, n *node.StatisticNode) {
			totals := n.Totals()
			assert.Zero(t, n.InFlight(), name)
			assert.Equal(t, totals.Pass, totals.Complete, name)
			if g := n.Gauge(nil); g != nil {
				assert.Zero(t, g.InUse(), name)
			}
			for _, w := range n.Windows() {
				assert.Zero(t, w.Waiting(clock.Now()+int64(49*time.Hour)), name)
			}
		})
	})
	return e, clock, log
}

func eachNode(e *core.Engine, f func(name string, n *node.StatisticNode)) {
	f("inbound", &e.Tree().Inbound().StatisticNode)
	e.EachResource(func(r *core.Resource) {
		if !r.Entered() {
			return
		}
		f(r.Name(), &r.StatisticNode)
		for context, n := range r.Calls().All() {
			f(r.Name()+" in "+context, &n.StatisticNode)
		}
		for origin, n := range r.Origins().All() {
			f(r.Name()+" from "+origin, &n.StatisticNode)
		}
	})
}

// lines collects what a logger writes, a line for each record.
type lines struct{ strings.Builder }

func (l *lines) all() []string {
	text := strings.TrimSuffix(l.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
