package hotspot_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotspot"
)

func TestThrottleSpacesEachValue(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Behavior: hotspot.Throttle, MaxWait: 200 * ms})
	assert.Equal(t, "pass, 100ms, 200ms, block x2", g.outcomes(5, user("ann")), "a wait of exactly the maximum is allowed")
	assert.Equal(t, "pass, 100ms, 200ms, block", g.outcomes(4, user("bob")))
	g.at(250 * ms)
	assert.Equal(t, "50ms, 150ms, block", g.outcomes(3, user("ann")))
	g.at(time.Minute)
	assert.Equal(t, "pass", g.outcome(user("ann"), core.Count(5)), "the first after an idle time is free")
	assert.Equal(t, "200ms", g.outcome(user("ann"), core.Count(2)))
}

func TestThrottleKeepsFractions(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 3, Behavior: hotspot.Throttle, MaxWait: time.Second})
	assert.Equal(t, "pass, 333.333333ms, 666.666666ms, 999.999999ms, block", g.outcomes(5, user(1)))
	// Beyond 2000 a second, spacing in milliseconds would be none at all. museum 41
	g = newGuard(t, hotspot.Rule{Param: "user", Threshold: 3000, Behavior: hotspot.Throttle, MaxWait: time.Millisecond})
	assert.Equal(t, 4, g.passes(100, user(1)))
}

func TestThrottleExceptions(t *testing.T) {
	g := newGuard(t, hotspot.Rule{
		Param: "user", Threshold: 4, Interval: 2 * time.Second, Behavior: hotspot.Throttle, MaxWait: time.Second,
		Exceptions: []hotspot.Exception{{Value: core.ValueOf("vip"), Threshold: 16}},
	})
	assert.Equal(t, "pass, 500ms, 1s, block", g.outcomes(4, user("std")))
	assert.Equal(t, "pass, 125ms", g.outcomes(2, user("vip")))
}

// The longest of all waits is the wait.
func TestThrottleListWaitsForTheLast(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Behavior: hotspot.Throttle})
	assert.Equal(t, "pass, 100ms, 200ms", g.outcomes(3, user("a")))
	assert.Equal(t, "300ms", g.outcome(user([]string{"b", "a", "c"})))
	assert.Equal(t, "100ms", g.outcome(user("b")))
}

// A call that can't wait gives its turn back.
func TestTurnIsGivenBack(t *testing.T) {
	g := newGuard(t, hotspot.Rule{Param: "user", Threshold: 10, Behavior: hotspot.Throttle})
	assert.Equal(t, "pass, 100ms", g.outcomes(2, user("a")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_, err := g.Enter(ctx, "orders", []core.Option{user("a")})
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	assert.Equal(t, "200ms", g.outcome(user("a")))
}

// Units that a call took in vain are there for others, unless the bucket was filled
// since.
func TestBucketUnitsAreGivenBack(t *testing.T) {
	g := newGuard(t,
		hotspot.Rule{ID: "wait", Param: "item", Threshold: 1, Behavior: hotspot.Throttle, MaxWait: 3 * time.Second},
		hotspot.Rule{ID: "user", Param: "user", Threshold: 2},
	)
	assert.Equal(t, "pass", g.outcome(core.Param("item", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_, err := g.Enter(ctx, "orders", []core.Option{user("a"), core.Param("item", 1)})
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	assert.Equal(t, "pass x2, block", g.outcomes(3, user("a")))
}
