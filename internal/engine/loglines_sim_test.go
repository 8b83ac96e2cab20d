//go:build sim

package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// loggedCount adds up the counts in the lines of a log.
type loggedCount struct {
	slog.Handler
	n *int64
}

func (h loggedCount) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "count" {
			*h.n += a.Value.Int64()
		}
		return true
	})
	return nil
}

func (loggedCount) Enabled(context.Context, slog.Level) bool { return true }

// Calls are rejected while the timer looks at earlier ones, some of them at an old time. When the
// timer has stopped, every rejection has been logged, once. known bug 178
func TestSimLogTellsEveryRefusal(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		logged := int64(0)
		clock := &bell{Manual: clocks.NewManual(time.Unix(1, 0))}
		e, err := NewEngine(Config{Chain: NewChain(), Clock: clock, Logger: slog.New(loggedCount{slog.DiscardHandler, &logged})})
		if err != nil {
			s.Failf("%v", err)
		}
		b := NewCounted(core.BlockError{Kind: core.KindFlow, Resource: "orders", Rule: "none"}, nil, nil, nil)
		start := clock.Now()
		for lane := range uint32(2) {
			late := s.Rand.Int64N(3) * int64(time.Second)
			s.Go(func() {
				for range 2 {
					inv := Invocation{engine: e, lane: lane}
					inv.now = start + late
					if inv.NoteRefusal(b) {
						e.LogBlocked(b, inv.now)
					}
				}
			})
		}
		s.Go(func() {
			for second := range int64(3) {
				e.blockLog.ring(start + second*int64(time.Second))
			}
		})
		s.Check(func() {
			now := start + int64(2*time.Second)
			for rings := 0; len(e.blockLog.topics) > 0; rings++ {
				if rings == 4 {
					s.Failf("the timer never ends")
					break
				}
				now += int64(time.Second)
				e.blockLog.ring(now)
			}
			if logged != 4 {
				s.Failf("%d refusals of 4 are logged", logged)
			}
			for _, ring := range clock.rings {
				if ring != nil {
					s.Failf("a timer is left")
				}
			}
		})
	})
}
