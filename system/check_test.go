package system_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/system"
)

// Every kind of rule blocks, and its refusal names it.
// known bug 74
func TestEveryMetricBlocks(t *testing.T) {
	for _, r := range []system.Rule{
		{Metric: system.Load, Threshold: 4},
		{Metric: system.Load, Threshold: 4, Strategy: system.BBR},
		{Metric: system.Load, Threshold: 4, Strategy: system.Gate},
		{Metric: system.CPU, Threshold: 0.8},
		{Metric: system.CPU, Threshold: 0.8, Strategy: system.BBR},
		{Metric: system.CPU, Threshold: 0.8, Strategy: system.Gate},
		{Metric: system.RT, MaxRT: 50 * ms},
		{Metric: system.Concurrency, Threshold: 3},
		{Metric: system.QPS, Threshold: 3},
	} {
		t.Run(fmt.Sprint(r.Metric, r.Strategy), func(t *testing.T) {
			r.ID = "it"
			g := newGuard(t, r)
			g.reads(1, 0.1)
			require.Equal(t, 1, g.passes(1))
			// Now each rule has a reason to refuse: the machine is busy, three calls are in flight
			// after one that took a second, and three have passed.
			g.at(time.Second)
			for range 2 {
				_, exit := g.open(1)
				g.at(time.Second + 100*ms)
				exit()
			}
			passed, exit := g.open(3)
			defer exit()
			g.reads(9, 0.9)
			_, err := g.enter(1)
			if r.Metric == system.QPS {
				assert.Equal(t, 1, passed)
			}
			var block *core.BlockError
			require.ErrorAs(t, err, &block)
			assert.Equal(t, core.KindSystem, block.Kind)
			assert.Equal(t, "it", block.Rule)
			assert.Equal(t, "orders", block.Resource)
			assert.Positive(t, g.figures("it").Refused)

			// Calls that are not inbound are not limited.
			e, err := g.Enter(t.Context(), "orders", nil)
			require.NoError(t, err)
			e.Exit()
		})
	}
}

// A QPS rule counts calls that pass, not calls that complete: no more slow calls are admitted than
// fast ones, and the limit holds for all resources together.
// known bug 94
func TestQPSCountsPassesNotCompletions(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.QPS, Threshold: 10})
	var open []engine.Entry
	defer func() {
		for _, e := range open {
			e.Exit()
		}
	}()
	for second := range 12 { // each call takes ten seconds
		g.at(time.Duration(second) * time.Second)
		if second >= 10 {
			for _, e := range open[:10] {
				e.Exit()
			}
			open = open[10:]
		}
		var passed int
		for i := range 30 {
			e, err := g.Enter(t.Context(), fmt.Sprint("r", i%3), []engine.Option{engine.Inbound()})
			if err == nil {
				passed++
				open = append(open, e)
			}
		}
		assert.Equal(t, 10, passed, "second %d", second)
	}
	err := error(nil)
	_, err = g.enter(1)
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, time.Second, comeAgain(t, block))
}

// Sentinel admits one more than the limit, and ignores the units of a batch.
func TestConcurrencyIsExact(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.Concurrency, Threshold: 5})
	passed, exit := g.open(9)
	assert.Equal(t, 5, passed)
	exit()
	e, err := g.enter(3)
	require.NoError(t, err)
	_, err = g.enter(3)
	require.ErrorIs(t, err, core.ErrBlocked)
	passed, exit = g.open(9)
	assert.Equal(t, 2, passed)
	exit()
	e.Exit()
	passed, exit = g.open(9)
	assert.Equal(t, 5, passed)
	exit()
}

// Two limits of one kind share a meter; each holds, and a call is counted once.
func TestTwoLimitsOfOneKind(t *testing.T) {
	g := newGuard(t,
		system.Rule{ID: "q7", Metric: system.QPS, Threshold: 7}, system.Rule{ID: "q5", Metric: system.QPS, Threshold: 5},
		system.Rule{ID: "c4", Metric: system.Concurrency, Threshold: 4}, system.Rule{ID: "c3", Metric: system.Concurrency, Threshold: 3})
	passed, exit := g.open(9)
	assert.Equal(t, 3, passed)
	assert.EqualValues(t, 6, g.figures("c3").Refused)
	exit()
	passed, exit = g.open(9)
	assert.Equal(t, 2, passed)
	assert.EqualValues(t, 7, g.figures("q5").Refused)
	exit()
}

func TestZeroBlocksEverything(t *testing.T) {
	for _, m := range []system.Metric{system.QPS, system.Concurrency} {
		g := newGuard(t, system.Rule{Metric: m})
		assert.Zero(t, g.passes(1000))
		g.load(system.Rule{Metric: m, Threshold: 0.9})
		assert.Zero(t, g.passes(1000), "and so does a threshold below one")
		g.load(system.Rule{Metric: m, Threshold: 1})
		assert.Equal(t, 1, g.passes(1))
	}
}

// The mean covers the calls that completed in the interval; a rule refuses above its limit, not at
// it, and admits every call if none completed.
func TestRT(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.RT, MaxRT: 50 * ms})
	call := func(from, to time.Duration) {
		g.at(from)
		e, err := g.enter(1)
		require.NoError(t, err)
		g.at(to)
		e.Exit()
	}
	call(0, 50*ms)
	assert.Equal(t, 1, g.passes(1), "50 ms are not above")
	_, exit := g.open(1)
	g.at(151*ms + 1) // the mean of 50 ms, 0 and 101 ms and a little
	exit()
	assert.Equal(t, 0, g.passes(1))
	g.at(999 * ms)
	assert.Equal(t, 0, g.passes(1))
	g.at(time.Second)
	assert.Equal(t, 1, g.passes(1), "no call completed lately")
	assert.EqualValues(t, 2, g.figures("system:rt").Refused)

	// A third of a nanosecond above the limit is above it.
	g = newGuard(t, system.Rule{Metric: system.RT, MaxRT: 50 * ms})
	_, exit = g.open(2)
	_, last := g.open(1)
	g.at(50 * ms)
	exit()
	assert.Equal(t, 1, g.passes(1))
	g = newGuard(t, system.Rule{Metric: system.RT, MaxRT: 50 * ms})
	_, exit = g.open(2)
	_, later := g.open(1)
	g.at(50 * ms)
	exit()
	g.at(50*ms + 1)
	later()
	assert.Equal(t, 0, g.passes(1))
	last()
}

// While the load is too high, the number of calls in flight is at most throughput times lowest
// response time.
func TestBBR(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.Load, Threshold: 4, Strategy: system.BBR})
	g.reads(9, -1)
	passed, exit := g.open(50)
	assert.Equal(t, 50, passed, "there is no evidence against anybody")
	g.at(100 * ms)
	exit()
	// 50 per second that take 100 ms each: five at once, so a sixth is admitted, and no seventh.
	passed, exit = g.open(50)
	assert.Equal(t, 6, passed)
	g.reads(4, -1)
	more, exitMore := g.open(50)
	assert.Equal(t, 50, more, "4 is not above 4")
	exit()
	exitMore()
	// A burst that ends at once proves no throughput: not twice the calls of a window.
	g = newGuard(t, system.Rule{Metric: system.Load, Threshold: 4, Strategy: system.BBR})
	_, exit = g.open(20)
	g.at(200 * ms)
	exit()
	g.reads(9, -1)
	passed, exit = g.open(50)
	assert.Equal(t, 5, passed, "20 per second times 200 ms, and one more")
	exit()
}

// A gate is all or nothing.
func TestGate(t *testing.T) {
	g := newGuard(t, system.Rule{Metric: system.CPU, Threshold: 0.7, Strategy: system.Gate})
	assert.Equal(t, 5, g.passes(5), "it is not known yet")
	g.reads(-1, 0.7)
	assert.Equal(t, 5, g.passes(5))
	g.reads(-1, 0.70001)
	assert.Equal(t, 0, g.passes(5))
	g.reads(-1, 0.1)
	assert.Equal(t, 5, g.passes(5))
}

// A shadow rule refuses no call and counts the calls it would have refused; these don't count
// towards its limit.
func TestShadow(t *testing.T) {
	g := newGuard(t,
		system.Rule{ID: "qps", Metric: system.QPS, Threshold: 3, Mode: spec.Shadow},
		system.Rule{ID: "concurrency", Metric: system.Concurrency, Threshold: 2, Mode: spec.Shadow},
		system.Rule{ID: "rt", Metric: system.RT, MaxRT: ms, Mode: spec.Shadow},
		system.Rule{ID: "cpu", Metric: system.CPU, Threshold: 0.5, Strategy: system.Gate, Mode: spec.Shadow},
		system.Rule{ID: "steady", Metric: system.CPU, Threshold: 0.5, Mode: spec.Shadow},
		system.Rule{ID: "off", Metric: system.QPS, Mode: spec.Off})
	passed, exit := g.open(5)
	assert.Equal(t, 5, passed)
	g.at(10 * ms)
	exit()
	g.reads(-1, 0.9)
	assert.Equal(t, 5, g.passes(5))
	for id, want := range map[string]int64{"qps": 7, "concurrency": 3, "rt": 5, "cpu": 5, "steady": 0, "off": 0} {
		f := g.figures(id)
		assert.Equal(t, want, f.ShadowBlocked, id)
		assert.Zero(t, f.Refused, id)
	}
	passed, exit = g.open(5)
	defer exit()
	assert.Equal(t, 5, passed)
	assert.Positive(t, g.figures("steady").ShadowBlocked)
}

// Of 64 goroutines at one instant, exactly the limit passes, and no more run at once.
// known bug 1, 2
func TestLimitsUnderConcurrency(t *testing.T) {
	const limit, rounds = 5, 300
	for _, rule := range []system.Rule{{Metric: system.QPS, Threshold: limit}, {Metric: system.Concurrency, Threshold: limit}} {
		g := newGuard(t, rule)
		for round := range rounds {
			g.at(time.Duration(round) * time.Second)
			var entries [64]engine.Entry
			var passed atomic.Int64
			trial.Together(len(entries), func(i int) {
				e, err := g.Enter(context.Background(), "orders", []engine.Option{engine.Inbound()})
				if err == nil {
					passed.Add(1)
				}
				entries[i] = e
			})
			for _, e := range entries {
				e.Exit()
			}
			require.EqualValues(t, limit, passed.Load(), "round %d", round)
		}
	}
}
