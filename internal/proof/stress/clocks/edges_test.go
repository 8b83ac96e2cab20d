package clocks

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

// Bursts of more than the limit, right before and right after the edges of seconds and buckets, to
// the millisecond: no interval sees more than its bound. known bug 9, 29
func TestBurstsAroundEdges(t *testing.T) {
	near := []time.Duration{-2 * ms, -ms, -1, 0, 1, ms, 2 * ms}
	var problems []string
	calls := 0
	for _, length := range []time.Duration{10 * ms, 100 * ms, time.Second, 3 * time.Second} {
		for _, shape := range []flow.Rule{{Buckets: 1}, {Buckets: 2}, {Buckets: 10}, {Buckets: 10, Window: flow.Strict}, {Buckets: 1, Window: flow.Strict}} {
			r := shape
			r.Resource, r.Threshold, r.Interval = "orders", limit, length
			width := length / time.Duration(r.Buckets)
			for _, first := range near {
				for _, second := range near {
					tr := &trial{cell: cell{behavior: behavior{name: "edges", rule: r}}, clock: newSource(), setAt: -1, rightAt: -1}
					clock := clocks.NewManual(time.Unix(0, tr.clock.begin))
					g := newGuard(t, clock, r)
					// Two bursts in each of the buckets, one near its begin and one near its
					// middle.
					for edge := width; edge < 3*length+width; edge += width {
						for _, at := range []time.Duration{edge + first, edge + second, edge + width/2 + first} {
							clock.AdvanceTo(tr.clock.begin + int64(at))
							for range limit/2 + 1 {
								calls++
								if e, err := g.Entry(t.Context(), "orders"); err == nil {
									now := clock.Now()
									tr.events = append(tr.events, event{resource: "orders", ran: time.Duration(now - tr.clock.begin), ranAt: now})
									e.Exit()
								}
							}
						}
					}
					tr.checkWindow(r)
					problems = append(problems, tr.problems...)
				}
			}
		}
	}
	for _, p := range problems[:min(len(problems), 10)] {
		t.Error(p)
	}
	figure.Report(t, figure.Figure{Name: "over the limit around edges", Value: float64(len(problems)), N: int64(calls)})
}
