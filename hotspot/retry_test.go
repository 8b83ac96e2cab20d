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

// retryAfter makes calls of a value that end at once until one is refused, and says when
// to come again.
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

// What a refusal says of one value is not what it says of another, and it goes on to
// tell as time passes.
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

// When a call exits is not known.
func TestRetryAfterInFlight(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 1, Metric: hotspot.Concurrency})
	e, err := g.enter(user("ann"))
	require.NoError(t, err)
	assertNobodyKnows(t, g.retryAfter("ann"))
	e.Exit()
}

// Values that share what is left over are told when one that comes anew would pass.
func TestRetryAfterOfTheRest(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 5, MaxValues: 1})
	assert.Equal(t, "pass", g.outcome(user("ann"))) // has the one place
	block := g.retryAfter("bob")
	assert.Equal(t, 1100*ms, comeAgain(t, block), "a strict window of ten buckets and one")
	g.at(time.Second)
	assert.Equal(t, 100*ms, comeAgain(t, block))
	g.at(1100*ms + 1) // ann can be forgotten
	assert.Zero(t, comeAgain(t, block))
	assert.Equal(t, "pass", g.outcome(user("bob")))

	q := newGuard(t, hotspot.Rule{Param: "user", Threshold: 5, MaxValues: 1, Behavior: hotspot.Throttle, MaxWait: 300 * ms})
	assert.Equal(t, "pass", q.outcome(user("ann")))
	assert.Equal(t, 100*ms, comeAgain(t, q.retryAfter("bob")))
}

// A rule that changed tells what is true under the new one.
func TestRetryAfterAReload(t *testing.T) {
	g := newGuard(t, hotspot.Rule{ID: "users", Param: "user", Threshold: 10, Window: hotspot.Refill})
	before := g.retryAfter("ann")
	g.load(hotspot.Rule{ID: "users", Param: "user", Threshold: 2, Window: hotspot.Refill})
	after := g.retryAfter("ann")
	assert.NotSame(t, before, after)
	assert.Equal(t, 4500*ms, comeAgain(t, after), "ten are used, two come back a second")
	g.load(hotspot.Rule{ID: "users", Param: "user", Threshold: 20, Window: hotspot.Refill})
	assert.Equal(t, "pass", g.outcome(user("ann")))
}

// Under any rule and in any state: who comes when it is time passes, and one nanosecond
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
			if wait == 0 { // for a batch there is no room, for one unit there is
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
