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

// toldOf adds up what the lines of a log tell.
type toldOf struct {
	slog.Handler
	n *int64
}

func (h toldOf) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "count" {
			*h.n += a.Value.Int64()
		}
		return true
	})
	return nil
}

func (toldOf) Enabled(context.Context, slog.Level) bool { return true }

// Calls are refused while the timer looks at what they left, some of them by a time that is long
// over. Once there is nothing more to ring for, every refusal has been told, once. known bug 178
func TestSimLogTellsEveryRefusal(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		told := int64(0)
		clock := &bell{Manual: clocks.NewManual(time.Unix(1, 0))}
		e, err := NewEngine(Config{Chain: NewChain(), Clock: clock, Logger: slog.New(toldOf{slog.DiscardHandler, &told})})
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
			if told != 4 {
				s.Failf("%d refusals of 4 are told", told)
			}
			for _, ring := range clock.rings {
				if ring != nil {
					s.Failf("a timer is left")
				}
			}
		})
	})
}
