//go:build sim

package engines

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// memory is a machine whose memory use the schedule sets, in bytes of 100.
type memory struct{ used int64 }

func (*memory) Load(int64) (float64, error) { return 0, nil }
func (*memory) CPU(int64) (float64, error)  { return 0, nil }
func (m *memory) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: m.used, Limit: 100}, nil
}

// The threshold falls while calls are being decided. Once a call that arrived after the fall has
// passed, nothing exceeds the low threshold, whichever threshold earlier calls had seen: they took
// their units before the fall, or look again and see it. Few schedules distinguish the two, so the
// test plays as many as for machines smaller than an engine.
func TestSimThresholdThatFalls(t *testing.T) {
	const most, least = 3, 1
	low := 100 * time.Millisecond // between two turns
	rule := flow.Rule{ID: "memory", Resource: "a", Threshold: most, MemoryThreshold: least,
		LowMemory: flow.Share(0.5), HighMemory: flow.Share(0.9)}
	permits, queue := rule, rule
	permits.Metric = flow.Concurrency
	queue.Behavior, queue.MaxWait, queue.Threshold, queue.MemoryThreshold = flow.Throttle, time.Hour, 1000, 10
	for _, rule := range []flow.Rule{rule, permits, queue} {
		t.Run(rule.Metric.String()+" "+rule.Behavior.String(), func(t *testing.T) {
			schedules.Random(t, func(s *schedules.Schedule) {
				shows := new(memory)
				e := newMemoryEngine(s, shows, rule)
				fallen := false
				running, lateOnes := 0, 0 // at the moment
				var turns []int64         // in which calls ran
				lateTurn := int64(math.MaxInt64)
				for range 2 + s.Rand.IntN(2) {
					s.Go(func() {
						for range 2 {
							late := fallen
							entry, ok := enter(e, "a")
							if !ok {
								continue
							}
							at := s.Clock().Now()
							turns = append(turns, at)
							running++
							if late {
								lateOnes++
								lateTurn = min(lateTurn, at)
							}
							if rule.Metric == flow.Concurrency && lateOnes > 0 && running > least {
								s.Failf("%d run side by side", running)
							}
							s.Clock().Now() // some work
							running--
							if late {
								lateOnes--
							}
							entry.Exit()
						}
					})
				}
				s.Named("memory", func() {
					shows.used = 100
					e.Sampler().Sample()
					fallen = true
				})
				s.Check(func() {
					slices.Sort(turns)
					if lateTurn == math.MaxInt64 {
						return
					}
					if rule.Metric == flow.QPS && rule.Behavior == flow.Reject && len(turns) > least {
						s.Failf("%d passed", len(turns))
					}
					for i := 1; i < len(turns) && rule.Behavior == flow.Throttle; i++ {
						if gap := turns[i] - turns[i-1]; turns[i] > lateTurn && gap < int64(low) {
							s.Failf("two run %v apart", time.Duration(gap))
						}
					}
				})
			})
		})
	}
}

func newMemoryEngine(s *schedules.Schedule, shows host.Source, rules ...flow.Rule) *engine.Engine {
	s.Clock().Set(start)
	e, err := engine.NewEngine(engine.Config{Clock: s.Clock(), Chain: trial.Chain(), Host: shows, Logger: silent})
	if err != nil {
		panic(err)
	}
	_ = e.Close() // no timer samples outside the schedule
	load(s, e, rules...)
	s.Check(func() {
		for _, problem := range books.Unsettled(e) {
			s.Failf("%s", problem)
		}
		if n := e.Failures(); n != 0 {
			s.Failf("%d slots panicked", n)
		}
	})
	return e
}
