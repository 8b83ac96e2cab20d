//go:build sim

package system

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/stat"
)

// meanOf is a simple version of times: response times by bucket.
type meanOf struct {
	head    int64
	buckets map[int64][]int64
}

func (m *meanOf) roll(now, width int64) {
	m.head = max(m.head, now/width)
	for b := range m.buckets {
		if b <= m.head-2 {
			delete(m.buckets, b)
		}
	}
}

func (m *meanOf) mean() int64 {
	var sum, n int64
	for _, rts := range m.buckets {
		for _, rt := range rts {
			sum += rt
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return (sum + n - 1) / n
}

// Callers complete and ask around the end of a bucket, some with an older reading of the clock.
// Every result is possible in some serial order.
func TestSimTimes(t *testing.T) {
	shape := stat.Shape{Interval: 20 * time.Millisecond, Buckets: 2}
	width := int64(shape.Width())
	schedules.Random(t, func(s *schedules.Schedule) {
		times := newTimes(shape)
		times.add(100*width, 7)
		first := &meanOf{100, map[int64][]int64{100: {7}}}
		var history schedules.History[*meanOf]
		for range 2 + s.Rand.IntN(2) {
			type op struct{ now, rt int64 }
			var ops []op
			for range 1 + s.Rand.IntN(2) {
				ops = append(ops, op{(100 + s.Rand.Int64N(4)) * width, s.Rand.Int64N(3)*10 - 10})
			}
			s.Go(func() {
				for _, o := range ops {
					history.Do(func() (func() string, func(*meanOf) bool) {
						var said int64
						if o.rt >= 0 {
							times.add(o.now, o.rt)
						} else {
							said = times.mean(o.now)
						}
						return func() string { return fmt.Sprintf("%+v: %d", o, said) },
							func(m *meanOf) bool {
								m.roll(o.now, width)
								if o.rt >= 0 {
									m.buckets[m.head] = append(m.buckets[m.head], o.rt)
									return true
								}
								return said == m.mean()
							}
					})
				}
			})
		}
		s.Check(func() {
			clone := func(m *meanOf) *meanOf {
				c := &meanOf{m.head, make(map[int64][]int64)}
				for b, rts := range m.buckets {
					c.buckets[b] = append([]int64(nil), rts...)
				}
				return c
			}
			if !history.Linearizable(first, clone) {
				s.Failf("no serial order gives these results (began-ended):\n%v", &history)
			}
		})
	})
}

// Calls compare with a ceiling while it is learned. None is admitted above the highest level so
// far, and a refusal is never lost: the rule that refused keeps limiting.
func TestSimCeiling(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		c := newCeiling()
		c.learn(0.25, gainOfCPU, evidence{2, 3}, true)
		refusedSince := make([]bool, 3)
		for i := range 3 {
			inFlight := 2 + s.Rand.Int64N(4)
			s.Go(func() {
				ok := c.admits(func() int64 { return inFlight })
				if !ok && inFlight <= 2 || ok && inFlight > 3 {
					s.Failf("%d in flight: %v, the levels were 3 and less, down to 2", inFlight, ok)
				}
				refusedSince[i] = !ok
			})
		}
		s.Go(func() {
			for range 2 {
				c.learn(0.25, gainOfCPU, evidence{2, 3}, true)
			}
		})
		s.Check(func() {
			for range quietSamples - 1 {
				c.learn(-0.1, gainOfCPU, evidence{2, 3}, true)
			}
			if c.units.Load() == none {
				s.Failf("it stopped too soon")
			}
			c.learn(-0.1, gainOfCPU, evidence{2, 3}, true)
			c.learn(-0.1, gainOfCPU, evidence{2, 3}, true)
			if c.units.Load() != none {
				s.Failf("it limits, but no call was refused")
			}
		})
	})
}
