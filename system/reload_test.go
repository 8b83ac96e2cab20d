package system_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/stat"
	"github.com/penstock-go/penstock/system"
)

// Admitted calls stay counted across edits: a storm of reloads admits nothing extra.
// known bug 72
func TestReloadForgetsNothing(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.QPS, Threshold: 100})
	passed := 0
	for i := range 100 {
		passed += g.passes(3)
		g.load(
			system.Rule{Metric: system.QPS, Threshold: 100, Interval: time.Duration(1+i%3) * time.Second, Strict: i%2 == 0},
			system.Rule{ID: "more", Metric: system.Concurrency, Threshold: float64(50 + i)})
	}
	assert.Equal(t, 100, passed)
	g.load(system.Rule{Metric: system.QPS, Threshold: 101, Interval: time.Minute})
	assert.Equal(t, 1, g.passes(5))
	g.load(system.Rule{ID: "renamed", Metric: system.QPS, Threshold: 103, Interval: time.Minute})
	assert.Equal(t, 2, g.passes(5))
	assert.EqualValues(t, 200+4+3, g.figures("renamed").Refused, "it goes on from the one it was")
}

// Calls in flight stay in flight when the limit changes.
// known bug 64
func TestReloadWithCallsInFlight(t *testing.T) {
	g := newGuard(t)
	_, exit := g.open(3) // before there was a rule
	g.load(system.Rule{Metric: system.Concurrency, Threshold: 5})
	passed, more := g.open(9)
	assert.Equal(t, 2, passed)
	g.load(system.Rule{Metric: system.Concurrency, Threshold: 4})
	assert.Equal(t, 0, g.passes(1))
	more()
	assert.Equal(t, 1, g.passes(1))
	g.load()
	assert.Empty(t, g.Tree().Inbound().Meters().Semaphores(), "what no rule needs is let go")
	assert.Empty(t, g.Tree().Inbound().Meters().Windows())
	g.load(system.Rule{Metric: system.Concurrency, Threshold: 4}, system.Rule{Metric: system.QPS, Threshold: 1000})
	passed, more = g.open(9)
	assert.Equal(t, 1, passed)
	more()
	exit()
	assert.Len(t, g.Tree().Inbound().Meters().Windows(), 1)
}

// A call that was asked under one shape and takes under another finds the window in effect.
func TestReloadBetweenAskingAndTaking(t *testing.T) {
	rule := func(interval time.Duration) system.Rule {
		return system.Rule{Metric: system.QPS, Threshold: 10, Interval: interval}
	}
	var g *guard
	reloads := 0
	h := &hook{func(*engine.Invocation) {
		if reloads++; reloads < 20 {
			g.load(rule(time.Duration(1+reloads%2) * time.Second))
		}
	}}
	g = newGuardWith(t, engine.Config{Chain: trial.Chain().With(h, engine.Before("system"))}, rule(time.Second))
	assert.Equal(t, 10, g.passes(40))
	assert.GreaterOrEqual(t, reloads, 20)
}

type hook struct{ asked func(*engine.Invocation) }

func (*hook) Name() string { return "hook" }
func (h *hook) Ask(inv *engine.Invocation) engine.Verdict {
	h.asked(inv)
	return engine.Verdict{}
}
func (*hook) Take(*engine.Invocation) engine.Verdict { return engine.Verdict{} }

// An RT rule knows from the start the response times of earlier calls, and keeps them.
func TestReloadKeepsResponseTimes(t *testing.T) {
	g := newGuard(t)
	_, exit := g.open(1)
	g.at(100 * ms)
	exit()
	g.load(system.Rule{Metric: system.RT, MaxRT: 50 * ms})
	assert.Equal(t, 0, g.passes(1))
	g.load(system.Rule{Metric: system.RT, MaxRT: 60 * ms, Interval: 2 * time.Second})
	assert.Equal(t, 0, g.passes(1))
	g.at(1500 * ms)
	assert.Equal(t, 0, g.passes(1), "within two seconds")
	g.load(system.Rule{Metric: system.RT, MaxRT: 101 * ms, Interval: 2 * time.Second})
	assert.Equal(t, 1, g.passes(1))
	assert.EqualValues(t, 3, g.figures("system:rt").Refused)
}

// A steady rule that limits keeps limiting when its threshold is edited.
func TestReloadKeepsTheCeiling(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.CPU, Threshold: 0.5})
	_, exit := g.open(4)
	g.at(100 * ms)
	exit()
	g.reads(-1, 0.9)
	passed, exit := g.open(9)
	require.Less(t, passed, 9)
	exit()
	g.load(system.Rule{Metric: system.CPU, Threshold: 0.6})
	again, exit := g.open(9)
	defer exit()
	assert.Equal(t, passed, again)
}

// The node of inbound calls has a meter only while a rule of this family needs it.
func TestMetersStayAsLongAsARuleNeedsThem(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.QPS, Threshold: 1}, system.Rule{Metric: system.QPS, Threshold: 2, Interval: time.Minute, Mode: spec.Off})
	table := g.Rules().Family(core.KindSystem)
	meters := func() (found []meter.Meter) {
		inbound := g.Tree().Inbound()
		assert.Empty(t, inbound.Meters().Semaphores())
		for _, w := range inbound.Meters().Windows() {
			found = append(found, w.Meter)
		}
		return found
	}
	assert.Equal(t, []meter.Meter{{Shape: stat.Shape{Interval: time.Second, Buckets: 2}}}, meters())

	// A rule that gets another shape, or returns to one, counts in its own window.
	wider := func(buckets int) meter.Meter {
		g.load(system.Rule{ID: table.(interface{ Rules() []system.Rule }).Rules()[0].ID, Metric: system.QPS, Threshold: 1, Buckets: buckets})
		return meter.Meter{Shape: stat.Shape{Interval: time.Second, Buckets: buckets}, Era: meter.Era{Rule: table.(interface{ Rules() []system.Rule }).Rules()[0].ID, Revision: g.Rules().Revision}}
	}
	for _, buckets := range []int{5, 2} {
		m := wider(buckets)
		assert.Equal(t, []meter.Meter{m}, meters())
	}
	g.load()
	assert.Empty(t, meters())
}
