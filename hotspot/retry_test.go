package hotspot_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
)

// retryAfter makes calls of a value that end at once until one is refused, and returns that
// refusal.
func (g *guard) retryAfter(v any) *core.BlockError {
	g.t.Helper()
	for range 1000 {
		e, err := g.enter(user(v))
		e.Exit()
		if block, ok := errors.AsType[*core.BlockError](err); ok {
			return block
		}
	}
	require.Fail(g.t, "nobody was refused")
	return nil
}

// The refusal of one value is independent of another's, and its RetryAfter stays current as time
// passes.
func TestRetryAfterOfEachValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "users", Param: "user", Threshold: 10, Exceptions: []hotspot.Exception{{Value: argument.Of("banned"), Threshold: 0}}})
	ann := g.retryAfter("ann")
	assert.Equal(t, 1100*ms, comeAgain(t, ann), "an interval and a tenth after the first")
	g.at(450 * ms)
	bob := g.retryAfter("bob")
	assert.Equal(t, 650*ms, comeAgain(t, ann))
	assert.Equal(t, 1050*ms, comeAgain(t, bob), "since the tenth began in which it passed")
	assertNobodyKnows(t, g.retryAfter("banned"), "never")
	assert.Same(t, ann, g.retryAfter("ann"), "it is made once")
	g.at(1100 * ms)
	assert.Zero(t, comeAgain(t, ann))
	assert.Equal(t, "pass", g.outcome(user("ann")))
	assert.Equal(t, "users", ann.Rule)
	assert.EqualValues(t, 4, g.figures("users").Refused, "they count together")
}

func TestRetryAfterOfAQueue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Behavior: hotspot.Throttle, MaxWait: 250 * ms})
	block := g.retryAfter("ann")
	assert.Equal(t, 50*ms, comeAgain(t, block), "the next turn is 300 ms away")
	g.at(50 * ms)
	assert.Zero(t, comeAgain(t, block))
	assert.Equal(t, "250ms", g.outcome(user("ann")))
}

// RetryAfter is unknown for units in flight, since nobody knows when a call exits.
func TestRetryAfterInFlight(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 1, Metric: hotspot.Concurrency})
	e, err := g.enter(user("ann"))
	require.NoError(t, err)
	assertNobodyKnows(t, g.retryAfter("ann"))
	e.Exit()
}

// Values that share the rest get the same RetryAfter as a new value.
func TestRetryAfterOfTheRest(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 5, MaxValues: 1})
	assert.Equal(t, "pass", g.outcome(user("ann"))) // ann has the only cell
	block := g.retryAfter("bob")
	assert.Equal(t, 1100*ms, comeAgain(t, block), "a strict window of ten buckets and one")
	g.at(time.Second)
	assert.Equal(t, 100*ms, comeAgain(t, block))
	g.at(1100*ms + 1) // ann can be evicted
	assert.Zero(t, comeAgain(t, block))
	assert.Equal(t, "pass", g.outcome(user("bob")))

	q := newGuard(t, hotspot.Rule{Param: "user", Threshold: 5, MaxValues: 1, Behavior: hotspot.Throttle, MaxWait: 300 * ms})
	assert.Equal(t, "pass", q.outcome(user("ann")))
	assert.Equal(t, 100*ms, comeAgain(t, q.retryAfter("bob")))
}

// After a rule has changed, its earlier refusal computes RetryAfter from the new rule.
func TestRetryAfterAReload(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "users", Param: "user", Threshold: 10, Window: hotspot.Refill})
	before := g.retryAfter("ann")
	g.load(hotspot.Rule{ID: "users", Param: "user", Threshold: 2, Window: hotspot.Refill})
	after := g.retryAfter("ann")
	assert.NotSame(t, before, after)
	assert.Equal(t, 4500*ms, comeAgain(t, after), "ten are used, two are refilled per second")
	g.load(hotspot.Rule{ID: "users", Param: "user", Threshold: 20, Window: hotspot.Refill})
	assert.Equal(t, "pass", g.outcome(user("ann")))
}

// Under any rule and in any state, a call after RetryAfter passes, and a call one nanosecond
// earlier doesn't.
func TestRetryAfterIsExact(t *testing.T) {
	rnd := random(t)
	checked := 0
	for round := range 300 {
		r := hotspot.Rule{ID: "users", Param: "user", MaxValues: 2, Threshold: float64(1 + rnd.IntN(7)), Interval: []time.Duration{10 * ms, time.Second, 7 * time.Second}[rnd.IntN(3)]}
		switch rnd.IntN(4) {
		case 0:
			r.Behavior, r.MaxWait, r.Threshold = hotspot.Throttle, time.Duration(1+rnd.Int64N(int64(r.Interval))), r.Threshold/3
		case 1:
			r.Window, r.Burst = hotspot.Refill, rnd.IntN(5)
		case 2:
			r.Behavior, r.Burst, r.Threshold, r.MaxValues = hotspot.TokenBucket, 1+rnd.IntN(4), r.Threshold/3, 1+rnd.IntN(2)
		}
		g := newGuard(t, r)
		for range 30 {
			g.clock.Advance(time.Duration(rnd.Int64N(int64(r.Interval))))
			if rnd.IntN(10) == 0 && r.Behavior != hotspot.Throttle {
				r.Threshold = float64(1 + rnd.IntN(7))
				g.load(r)
			}
			v := fmt.Sprint(rnd.IntN(2))
			e, err := g.enter(user(v), engine.Units(1+rnd.IntN(2)))
			e.Exit()
			block, ok := errors.AsType[*core.BlockError](err)
			if !ok {
				continue
			}
			wait := comeAgain(t, block)
			if wait == 0 { // there is room for one unit, but not for the batch
				assert.NotEqual(t, "block", g.outcome(user(v)), "round %d, %+v", round, r)
				continue
			}
			g.clock.Advance(wait - 1)
			assert.Equal(t, "block", g.outcome(user(v)), "round %d, 1 ns before, %+v", round, r)
			g.clock.Advance(1)
			assert.NotEqual(t, "block", g.outcome(user(v)), "round %d, %+v", round, r)
			checked++
		}
	}
	assert.Greater(t, checked, 500)
}
