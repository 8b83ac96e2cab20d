//go:build sim

package hotspot

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
)

// simulated returns the controller of a rule that knows so few values that they share.
var refused = engine.NewCounted(core.BlockError{Kind: core.KindHotspot, Resource: "orders"}, nil, nil, nil)

func simulated(s *schedules.Schedule, r Rule) *controller {
	r.Resource, r.Param = "orders", "user"
	r, err := r.Normalized()
	if err != nil {
		s.Failf("%v", err)
	}
	c := &controller{record: new(engine.Record), rule: r, quota: r.quota(r.Threshold), refusal: refused}
	c.strict, c.refills = r.counts()
	c.calendar = r.periods().Calendar()
	c.values = newValues(r.MaxValues, c)
	return c
}

// Callers of a few values arrive around midnight, some with an older reading of the clock, with a
// table that has room for one or two values. No value gets more than its quota of a day, though it
// may be evicted and come back.
func TestSimQuotaOfValues(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		limit := 1 + s.Rand.Int64N(2)
		c := simulated(s, Rule{Threshold: float64(limit), MaxValues: 1 + s.Rand.IntN(2), Per: spec.PerDay})
		midnight := int64(24 * time.Hour)
		taken := make(map[int]map[int64]int64) // by value and period
		for range 2 + s.Rand.IntN(6) {
			v, gives := s.Rand.IntN(3), s.Rand.IntN(4) == 0
			now := midnight + s.Rand.Int64N(4) - 2
			s.Go(func() {
				for range 2 {
					held, block := c.grant(now, argument.Of(v), 1, nil)
					if block != nil {
						return
					}
					if taken[v] == nil {
						taken[v] = make(map[int64]int64)
					}
					taken[v][held.Token]++
					if gives {
						held.Holder.GiveBack(&held, 0)
						taken[v][held.Token]--
					}
				}
			})
		}
		s.Check(func() {
			for v, periods := range taken {
				for period, units := range periods {
					if units > limit {
						s.Failf("value %d has %d of %d in the period from %d", v, units, limit, period)
					}
				}
			}
		})
	})
}

// Callers of a few values arrive at about the same instant, with a table that has room for one or
// two values; some are refused elsewhere and give back. No value gets more than its limit, and at
// the end nothing is held.
// known bug 17, 87, 88, 89
func TestSimValues(t *testing.T) {
	const interval = int64(time.Second)
	schedules.Random(t, func(s *schedules.Schedule) {
		limit := 1 + s.Rand.Int64N(2)
		r := Rule{Threshold: float64(limit), MaxValues: 1 + s.Rand.IntN(2)}
		flying := s.Rand.IntN(2) == 0
		if flying {
			r.Metric = Concurrency
		} else {
			r.Window = Window(s.Rand.IntN(2))
		}
		c := simulated(s, r)
		if s.Rand.IntN(2) == 0 { // the table is full of a value that can, or can't, be evicted
			held, _ := c.grant(-interval*s.Rand.Int64N(3), argument.Of(99), 1, nil)
			if flying && s.Rand.IntN(2) == 0 {
				held.Holder.GiveBack(&held, 0)
			}
		}
		start := int64(0)
		var taken [3]int64
		for range 2 + s.Rand.IntN(3) {
			v, n := s.Rand.IntN(3), 1+s.Rand.Int64N(2)
			now, gives, again := start+s.Rand.Int64N(interval), s.Rand.IntN(3) == 0, s.Rand.IntN(2) == 0
			s.Go(func() {
				for range 2 {
					if c.ask(now, argument.Of(v), n, false, nil) == nil {
						if held, block := c.grant(now, argument.Of(v), n, nil); block == nil {
							if taken[v] += n; taken[v] > limit {
								s.Failf("value %d has %d of %d", v, taken[v], limit)
							}
							if flying || gives {
								_ = c.ask(now, argument.Of(v), 1, false, nil) // some work
								taken[v] -= n                                 // before any caller can see it
								held.Holder.GiveBack(&held, 0)
							}
						}
					}
					if !again {
						return
					}
				}
			})
		}
		s.Check(func() {
			for i := range c.values.shards {
				sh := &c.values.shards[i]
				for _, x := range append(slices.Clone(sh.ring), &sh.rest) {
					if x.value != argument.Of(99) && x.held != 0 || x.spent() < 0 {
						s.Failf("%v holds %d, used %d", x.value, x.held, x.spent())
					}
				}
				if len(sh.ring) > sh.room || len(sh.ring) != sh.cells.n {
					s.Failf("%d cells in a ring of %d, %d in all", len(sh.ring), sh.room, sh.cells.n)
				}
			}
		})
	})
}

// Of three callers of one value and one of another, exactly the allowed number is admitted, in every
// interleaving.
// known bug 17
func TestSimValuesEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		c := simulated(s, Rule{Threshold: 2, MaxValues: 2})
		var passed [2]int
		for _, v := range []int{0, 0, 0, 1} {
			s.Go(func() {
				if c.ask(0, argument.Of(v), 1, false, nil) == nil {
					if _, block := c.grant(0, argument.Of(v), 1, nil); block == nil {
						passed[v]++
					}
				}
			})
		}
		s.Check(func() {
			if passed != [2]int{2, 1} {
				s.Failf("%d pass", passed)
			}
		})
	})
}

// Callers take units of a few values from token buckets, in a table that has room for one or two of
// them. Some callers have an older reading of the clock; some return units, at once or after others.
// By the times at which its calls were decided, which never go back, no value gets more in any
// interval than a full bucket plus the units refilled in that interval.
// known bug 142
func TestSimTokenBuckets(t *testing.T) {
	const unit = int64(10 * time.Millisecond)
	schedules.Random(t, func(s *schedules.Schedule) {
		size := 1 + s.Rand.Int64N(3)
		c := simulated(s, Rule{Threshold: 100, Behavior: TokenBucket, Burst: int(size) - 1, MaxValues: 1 + s.Rand.IntN(2)})
		clock := int64(1e18)
		type event struct{ at, n int64 }
		var logs [3][]*event
		for range 3 + s.Rand.IntN(4) {
			v, n := s.Rand.IntN(3), 1+s.Rand.Int64N(min(size, 2))
			steps, late := s.Rand.Int64N(3)*unit/2, s.Rand.Int64N(2)*s.Rand.Int64N(3)*unit/2
			gives, again := s.Rand.IntN(4) == 0, 1+s.Rand.IntN(3)
			s.Go(func() {
				for range again {
					clock += steps
					now := clock - late
					_ = c.ask(now, argument.Of(v), n, false, nil) // with either result
					held, block := c.grant(now, argument.Of(v), n, nil)
					if block != nil {
						continue
					}
					e := &event{held.Undo, n}
					logs[v] = append(logs[v], e)
					if len(logs[v]) > 1 && logs[v][len(logs[v])-2].at > e.at {
						s.Failf("value %d is decided on at %d, after %d", v, e.at, logs[v][len(logs[v])-2].at)
					}
					if gives {
						_ = c.ask(now, argument.Of(v), 1, false, nil) // some work
						held.Holder.GiveBack(&held, 0)
						logs[v] = slices.DeleteFunc(logs[v], func(x *event) bool { return x == e })
					}
				}
			})
		}
		s.Check(func() {
			for v, log := range logs {
				for i, first := range log {
					units := int64(0)
					for _, last := range log[i:] {
						if units += last.n; (units-size)*unit > last.at-first.at {
							s.Failf("value %d: %d units in %v, and a bucket holds %d", v, units, time.Duration(last.at-first.at), size)
						}
					}
				}
			}
		})
	})
}

// Three callers use one value and a fourth another, with room for one value and two units in a
// bucket. At most two calls of each value are admitted, in every interleaving.
// known bug 142
func TestSimTokenBucketsEverySchedule(t *testing.T) {
	schedules.Exhaustive(t, 1_000_000, func(s *schedules.Schedule) {
		c := simulated(s, Rule{Threshold: 100, Behavior: TokenBucket, Burst: 1, MaxValues: 1})
		var passed [2]int
		for _, v := range []int{0, 0, 0, 1} {
			s.Go(func() {
				if _, block := c.grant(0, argument.Of(v), 1, nil); block == nil {
					passed[v]++
				}
			})
		}
		s.Check(func() {
			if passed[0] > 2 || passed[0]+passed[1] < 3 {
				s.Failf("%d pass", passed)
			}
		})
	})
}
