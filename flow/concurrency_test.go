package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func permits(n float64) flow.Rule {
	return flow.Rule{ID: "permits", Resource: "orders", Threshold: n, Metric: flow.Concurrency}
}

func TestConcurrency(t *testing.T) {
	g := newGuard(t, permits(3))
	exit := g.open(3, "orders")
	g.run([]step{{0, "orders", 2, "block x2"}, {time.Hour, "orders", 1, "block"}})
	exit()
	exit() // the second exit does nothing
	exit = g.open(3, "orders")
	assert.Equal(t, "block", g.outcome("orders"))
	exit()
	assert.Equal(t, 10, g.passes(10, "orders"), "one after the other")
}

func TestConcurrencyOfBatches(t *testing.T) {
	g := newGuard(t, permits(5.9))
	exit := g.open(1, "orders x3")
	assert.Equal(t, "block", g.outcome("orders x3"))
	assert.Equal(t, "pass", g.outcome("orders x2"))
	exit()
	assert.Equal(t, "pass", g.outcome("orders x5"))
	assert.Equal(t, "block", g.outcome("orders x6"))
}

// Two limits on one semaphore both hold, in either order.
func TestTwoConcurrencyRules(t *testing.T) {
	for _, thresholds := range [][]float64{{5, 3}, {3, 5}} {
		g := newGuard(t,
			flow.Rule{ID: "a", Resource: "orders", Threshold: thresholds[0], Metric: flow.Concurrency},
			flow.Rule{ID: "b", Resource: "orders", Threshold: thresholds[1], Metric: flow.Concurrency},
			flow.Rule{ID: "c", Resource: "orders", Threshold: 1, Metric: flow.Concurrency, Origin: "app"})
		exit := g.open(1, "orders from app")
		assert.Equal(t, "block", g.outcome("orders from app"))
		more := g.open(2, "orders")
		assert.Equal(t, "block", g.outcome("orders"))
		exit()
		more()
	}
}

// Calls in flight when a rule is loaded count against it until they end, in any order, even if the
// rules change often in between.
func TestConcurrencyRuleMeetsCallsInFlight(t *testing.T) {
	g := newGuard(t)
	early := g.open(3, "orders from app x2")
	g.load(permits(7))
	assert.Equal(t, "pass", g.outcome("orders"))
	assert.Equal(t, "block", g.outcome("orders x2"))
	late := g.open(1, "orders")
	assert.Equal(t, "block", g.outcome("orders"))
	g.load() // drops the semaphore and its count
	g.load(permits(8))
	assert.Equal(t, "block", g.outcome("orders x2"))
	early()
	assert.Equal(t, "pass", g.outcome("orders x7"))
	assert.Equal(t, "block", g.outcome("orders x8"))
	late()
	assert.Equal(t, "pass", g.outcome("orders x8"))
}

// Changing a threshold keeps the semaphore; after lowering it no call is admitted until enough have
// exited.
// known bug 64
func TestConcurrencyThresholdChanges(t *testing.T) {
	g := newGuard(t, permits(4))
	exit := g.open(4, "orders")
	g.load(permits(2))
	assert.Equal(t, "block", g.outcome("orders"))
	g.load(permits(5))
	more := g.open(1, "orders")
	assert.Equal(t, "block", g.outcome("orders"))
	g.load(permits(2))
	exit()
	assert.Equal(t, "pass", g.outcome("orders"))
	more()
}

// A rule loaded at the very moment a call exits doesn't count that call forever.
func TestConcurrencyRuleComesWhileACallExits(t *testing.T) {
	for _, place := range []engine.Position{engine.Before("statistic"), engine.After("statistic")} {
		var g *guard
		loads := false
		loader := &hook{completed: func() {
			if loads {
				loads = false
				g.load(permits(1))
			}
		}}
		g = newGuardWith(t, engine.Config{Chain: trial.Chain().With(loader, place)})
		exit := g.open(1, "orders")
		loads = true
		exit()
		assert.Equal(t, "pass", g.outcome("orders"), "the only permit is free")
		exit = g.open(1, "orders")
		assert.Equal(t, "block", g.outcome("orders"))
		exit()
	}
}

// The same holds for a call that is being admitted.
func TestConcurrencyRuleComesWhileACallEnters(t *testing.T) {
	for _, place := range []engine.Position{engine.Before("statistic"), engine.After("statistic"), engine.After("flow")} {
		var g *guard
		loads := false
		loader := &hook{passed: func() {
			if loads {
				loads = false
				g.load(permits(1))
			}
		}}
		g = newGuardWith(t, engine.Config{Chain: trial.Chain().With(loader, place)})
		loads = true
		exit := g.open(1, "orders")
		assert.Equal(t, "block", g.outcome("orders"))
		exit()
		assert.Equal(t, "pass", g.outcome("orders"))
		exit = g.open(1, "orders")
		assert.Equal(t, "block", g.outcome("orders"))
		exit()
	}
}

// hook is a slot that calls a function in each phase.
type hook struct{ asked, passed, completed func() }

func (*hook) Name() string { return "hook" }
func (h *hook) Ask(*engine.Invocation) engine.Verdict {
	if h.asked != nil {
		h.asked()
	}
	return engine.Verdict{}
}
func (h *hook) Take(*engine.Invocation) engine.Verdict { return engine.Verdict{} }
func (h *hook) Passed(*engine.Invocation) {
	if h.passed != nil {
		h.passed()
	}
}
func (h *hook) Completed(*engine.Invocation) {
	if h.completed != nil {
		h.completed()
	}
}

// Permits are held while the call waits in a queue, and are released if it gives up.
func TestPermitsAreHeldWhileWaiting(t *testing.T) {
	g := newGuard(t, permits(2), throttle(10, time.Hour))
	g.clock.SetSleep(clocks.SleepPark)
	exit := g.open(1, "orders")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := g.Enter(ctx, "orders", nil)
		result <- err
	}()
	g.clock.AwaitParked(1)
	assert.Equal(t, "block", g.outcome("orders"))
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	g.clock.SetSleep(clocks.SleepRecord)
	assert.Equal(t, "100ms", g.outcome("orders"))
	exit()
}
