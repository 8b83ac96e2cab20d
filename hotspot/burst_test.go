package hotspot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// The first units of a value run at once, and the next ones are spaced.
func TestThrottleWithABurst(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Behavior: hotspot.Throttle, Burst: 3, MaxWait: 200 * ms})
	assert.Equal(t, "pass x4, 100ms, 200ms, block", g.outcomes(7, user("ann")))
	assert.Equal(t, "pass x4", g.outcomes(4, user("bob")))
	g.at(250 * ms)
	assert.Equal(t, "50ms, 150ms, block", g.outcomes(3, user("ann")))
	assert.Equal(t, "pass x2, 50ms", g.outcomes(3, user("bob")))
}

// Random calls of values with plans and exceptions wait as long as those of a naive twin, which has the
// arrivals and costs of each value's calls.
func TestThrottleWithABurstIsItsTwin(t *testing.T) {
	r := random(t)
	calls, waited, refused := 0, 0, 0
	for range 200 {
		rule := hotspot.Rule{
			ID: "r", Param: "user", Threshold: []float64{10, 20, 50}[r.IntN(3)], Behavior: hotspot.Throttle, Burst: 1 + r.IntN(9),
			MaxWait:    time.Duration(1+r.Int64N(20)) * 20 * ms,
			Exceptions: []hotspot.Exception{{Value: argument.Of(0), Threshold: 100}},
			Plans:      map[string]float64{"pro": 40},
		}
		g := newGuard(t, rule)
		type call struct{ at, cost time.Duration }
		known := make(map[int][]call)
		now := time.Duration(0)
		for range 64 {
			now += time.Duration(r.Int64N(2) * r.Int64N(int64(60*ms)))
			value, units := r.IntN(4), 1+r.IntN(2)*r.IntN(5)
			opts, rate := []engine.Option{user(value), engine.Units(units)}, rule.Threshold
			switch value {
			case 0:
				rate = 100
			case 1:
				opts, rate = append(opts, engine.Plan("pro")), 40
			}
			unit := time.Duration(float64(time.Second) / rate)
			slack := time.Duration(rule.Burst) * unit
			cost := time.Duration(units) * unit
			turn, sum := now-slack, cost
			for i := len(known[value]) - 1; i >= 0; i-- {
				c := known[value][i]
				turn = max(turn, c.at-slack+sum)
				sum += c.cost
			}
			want := "block"
			if wait := max(0, turn-now); wait <= rule.MaxWait {
				known[value] = append(known[value], call{now, cost})
				if want = "pass"; wait > 0 {
					want = wait.String()
					waited++
				}
			} else {
				refused++
			}
			calls++
			g.at(now)
			require.Equal(t, want, g.outcome(opts...), "value %d at %v: %v", value, now, known[value])
		}
	}
	assert.Greater(t, 20*waited, calls)
	assert.Greater(t, 20*refused, calls)
}

// A changed limit, a plan and an exception hand out no burst twice, and neither does an evicted value.
func TestThrottleWithABurstOnce(t *testing.T) {
	rule := hotspot.Rule{ID: "r", Param: "user", Threshold: 10, Behavior: hotspot.Throttle, Burst: 9, MaxWait: 1, Plans: map[string]float64{"pro": 1000}}
	t.Run("reloads", func(t *testing.T) {
		g, r, passed := newGuard(t, rule), random(t), 0
		for range 50 {
			rule := rule
			rule.Threshold, rule.Burst = 10*float64(1+r.IntN(9)), 1+r.IntN(9)
			if rule.Exceptions = nil; r.IntN(2) == 0 {
				rule.Exceptions = []hotspot.Exception{{Value: argument.Of("ann"), Threshold: 500}}
			}
			g.load(rule)
			passed += g.passes(3, user("ann"))
		}
		assert.LessOrEqual(t, passed, 10)
	})
	t.Run("plans", func(t *testing.T) {
		g := newGuard(t, rule)
		assert.Equal(t, 5, g.passes(5, user("ann")))
		assert.Equal(t, 5, g.passes(20, user("ann"), engine.Plan("pro")))
	})
	t.Run("behaviors", func(t *testing.T) {
		g := newGuard(t, rule)
		assert.Equal(t, 10, g.passes(20, user("ann")))
		bucket := rule
		bucket.Behavior, bucket.MaxWait = hotspot.TokenBucket, 0
		g.load(bucket)
		assert.Equal(t, 0, g.passes(20, user("ann")))
		g.load(rule)
		assert.Equal(t, 0, g.passes(20, user("ann")))
	})
	t.Run("evictions", func(t *testing.T) {
		small := rule
		small.MaxValues = 1
		g := newGuard(t, small)
		passed := g.passes(20, user("ann"))
		for n := range 50 {
			g.passes(1, user(fmt.Sprint(n)))
		}
		assert.LessOrEqual(t, passed+g.passes(20, user("ann")), 10)
		g.at(time.Hour)
		assert.Equal(t, 10, g.passes(20, user("bob")))
	})
}
