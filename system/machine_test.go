package system_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sampler"
	"github.com/penstock-go/penstock/system"
)

// The machine is sampled while a rule needs it, and only the needed quantities.
func TestSamplingStartsAndStopsWithTheRules(t *testing.T) {
	g := newGuard(t)
	samples := func() int {
		before := g.dial.asked
		g.clock.Advance(10 * sampler.Period)
		return g.dial.asked - before
	}
	assert.Zero(t, samples(), "no rule was ever loaded")
	g.load(system.Rule{Metric: system.QPS, Threshold: 5}, system.Rule{Metric: system.CPU, Threshold: 0.5, Mode: spec.Off})
	assert.Zero(t, g.dial.asked)
	assert.Zero(t, samples(), "nobody looks at the machine")
	cpu := system.Rule{Metric: system.CPU, Threshold: 0.5}
	load := system.Rule{Metric: system.Load, Threshold: 5, Mode: spec.Shadow}
	g.load(cpu)
	assert.Equal(t, 1, g.dial.asked, "to see that it can be read")
	assert.Equal(t, 10, samples())
	g.load(cpu, load)
	assert.Equal(t, 20, samples())
	g.load(load)
	assert.Equal(t, 10, samples())
	g.load(system.Rule{Metric: system.QPS, Threshold: 5})
	assert.Zero(t, samples(), "the last one is gone")
	g.load(cpu)
	assert.Equal(t, 10, samples())
	require.NoError(t, g.Close())
	assert.Zero(t, samples())
	g.load(load)
	g.load()
	g.load(cpu)
	assert.Zero(t, samples(), "closed is closed")
}

// If the machine can't be read, rules that would need it are refused, and others are not.
func TestMachineThatCantBeRead(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.QPS, Threshold: 1})
	g.dial.cpuErr = errors.New("open proc/stat: no such file")
	require.EqualError(t, g.tryLoad(system.Rule{Metric: system.QPS}, system.Rule{Metric: system.CPU, Threshold: 0.5}),
		"system[1].metric: cpu can't be read on this machine: open proc/stat: no such file; use concurrency, qps or rt here")
	assert.Equal(t, 1, g.passes(2), "the rules from before")
	g.clock.Advance(time.Minute)
	assert.Equal(t, 1, g.dial.asked, "and nothing is sampled for a rule that was not loaded")
	g.load(system.Rule{Metric: system.Load, Threshold: 5}, system.Rule{Metric: system.CPU, Threshold: 0.5, Mode: spec.Off})
	g.dial.loadErr = errors.New("gone")
	g.load()
	require.ErrorContains(t, g.tryLoad(system.Rule{Metric: system.Load, Threshold: 5}), "gone", "it is asked anew")
}

// When the machine can no longer be read, no call is refused because of an old reading, and the log
// reports it once.
func TestMachineThatFailsLater(t *testing.T) {
	var log bytes.Buffer
	g := newGuardWith(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		system.Rule{ID: "gate", Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate})
	g.dial.cpu = 0.9
	g.clock.Advance(sampler.Period)
	assert.Equal(t, 0, g.passes(3))
	log.Reset()
	g.dial.cpuErr = errors.New("gone")
	g.clock.Advance(3 * sampler.Period)
	assert.Equal(t, 3, g.passes(3))
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), `level=ERROR msg="penstock: machine metric unreadable: rules on it don't limit until it recovers" metric=cpu error=gone`)
	g.load(system.Rule{ID: "gate", Metric: system.CPU, Threshold: 0.6, Strategy: system.Gate}) // is no reason to refuse an edit
	g.dial.cpuErr = nil
	g.clock.Advance(3 * sampler.Period)
	assert.Equal(t, 0, g.passes(3))
	assert.Contains(t, log.String(), `msg="penstock: machine metric readable again" metric=cpu`)
	// A reading that is not a number is ignored.
	g.reads(-1, nan())
	assert.Equal(t, 3, g.passes(3))
}

func nan() float64 { zero := 0.0; return zero / zero }

// A logger that loads rules when it hears of a failure doesn't deadlock.
// known bug 60
func TestListenerOfAFailureLoadsRules(t *testing.T) {
	var g *guard
	handler := calling{slog.DiscardHandler, func() {
		assert.NoError(t, g.tryLoad())
		assert.NoError(t, g.tryLoad(system.Rule{Metric: system.Load, Threshold: 1}))
	}}
	g = newGuardWith(t, engine.Config{Logger: slog.New(handler)}, system.Rule{Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate})
	g.dial.cpuErr = errors.New("gone")
	g.clock.Advance(3 * sampler.Period)
	assert.Equal(t, []string{"system:load"}, ids(g))
}

type calling struct {
	slog.Handler
	call func()
}

func (calling) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (c calling) Handle(context.Context, slog.Record) error      { c.call(); return nil }

func ids(g *guard) (ids []string) {
	for _, f := range g.Rules().RuleStats() {
		ids = append(ids, f.ID)
	}
	return ids
}

// The default source is this machine, if it can be read.
func TestMachineOfItsOwn(t *testing.T) {
	g := newGuardWith(t, engine.Config{Host: host.Local("/")})
	err := g.tryLoad(system.Rule{Metric: system.Load, Threshold: 1e15}, system.Rule{Metric: system.CPU, Threshold: 0.99})
	if runtime.GOOS != "linux" {
		require.ErrorContains(t, err, "system[0].metric: load can't be read on this machine: ")
		return
	}
	require.NoError(t, err)
	g.clock.Advance(10 * sampler.Period)
	g.passes(1)
}
