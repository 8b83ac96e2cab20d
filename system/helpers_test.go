package system_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/plant"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/system"
)

var seed, random = chance.Seed, chance.Source

func TestMain(m *testing.M) { books.Main(m) }

var start = trial.Start

const ms = time.Millisecond

// dial is a machine whose readings a test sets.
type dial struct {
	load, cpu       float64
	loadErr, cpuErr error
	asked           int
	plant           *plant.Plant // the source of the readings instead, if set
}

func (d *dial) Load(now int64) (float64, error) {
	if d.plant != nil {
		return d.plant.Load(), nil
	}
	d.asked++
	return d.load, d.loadErr
}

func (d *dial) CPU(now int64) (float64, error) {
	if d.plant != nil {
		return d.plant.CPU(), nil
	}
	d.asked++
	return d.cpu, d.cpuErr
}

func (d *dial) Memory(int64) (host.Memory, error) { return host.Memory{}, nil }

// guard is an engine under test, on a clock that stands still.
type guard struct {
	*engine.Engine
	t     testing.TB
	clock *clocks.Manual
	dial  *dial
}

func newGuard(t testing.TB, rules ...system.Rule) *guard {
	t.Helper()
	return newGuardWith(t, engine.Config{}, rules...)
}

// newGuardWith returns a guard. At the end of the test it must hold nothing.
func newGuardWith(t testing.TB, cfg engine.Config, rules ...system.Rule) *guard {
	t.Helper()
	d := &dial{load: -1, cpu: -1}
	if cfg.Host == nil {
		cfg.Host = d
	}
	e, clock := trial.Engine(t, cfg)
	if clock != nil {
		clock.SetSleep(clocks.SleepRecord)
	}
	g := &guard{e, t, clock, d}
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	if len(rules) > 0 {
		g.load(rules...)
	}
	return g
}

func (g *guard) load(rules ...system.Rule) {
	g.t.Helper()
	require.NoError(g.t, g.tryLoad(rules...))
}

func (g *guard) tryLoad(rules ...system.Rule) error {
	return g.Update(func(b *engine.SnapshotBuilder) error { return system.Compile(b, rules) })
}

// at moves the clock to d after the start.
func (g *guard) at(d time.Duration) { g.clock.AdvanceTo(start.Add(d).UnixNano()) }

// reads sets the readings of the machine, and samples it.
func (g *guard) reads(load, cpu float64) {
	g.dial.load, g.dial.cpu = load, cpu
	g.Sampler().Sample()
}

// enter makes an inbound call of some units.
func (g *guard) enter(units int) (engine.Entry, error) {
	return g.Enter(g.t.Context(), "orders", []engine.Option{engine.Inbound(), engine.Units(units)})
}

// open makes inbound calls that stay open until the returned function is called. It returns the
// number that passed.
func (g *guard) open(n int) (passed int, exit func()) {
	g.t.Helper()
	var entries []engine.Entry
	for range n {
		e, err := g.enter(1)
		if err == nil {
			entries = append(entries, e)
		} else {
			require.Equal(g.t, core.KindSystem, core.KindOf(err))
		}
	}
	return len(entries), func() {
		for _, e := range entries {
			e.Exit()
		}
	}
}

// passes returns how many of n inbound calls pass that end at once.
func (g *guard) passes(n int) (passed int) {
	g.t.Helper()
	for range n {
		e, err := g.enter(1)
		if err == nil {
			passed++
		}
		e.Exit()
	}
	return passed
}

// figures returns the stats of a rule.
func (g *guard) figures(id string) core.RuleStats {
	g.t.Helper()
	return trial.Figures(g.t, g.Engine, id)
}

// comeAgain returns the RetryAfter of a refusal, which must be known.
func comeAgain(t testing.TB, b *core.BlockError) time.Duration {
	t.Helper()
	wait, known := b.RetryAfter()
	require.True(t, known)
	return wait
}
