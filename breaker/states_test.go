package breaker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

func TestErrorRatio(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5, Recovery: time.Second})
	g.run([]step{
		{0, "fff", "pass x3", ""}, // fewer than five
		{100 * ms, "ggg", "pass x2, b", "closed-open"},
		{101 * ms, "g", "b", ""},
		{1099 * ms, "g", "b", ""},
		{1100 * ms, "f", "pass", "open-halfOpen halfOpen-open"},
		{2099 * ms, "g", "b", ""},
		{2100 * ms, "g", "pass", "open-halfOpen halfOpen-closed"},
		{2100 * ms, "ffff", "pass x4", ""}, // counting restarted
	})
}

func TestErrorCount(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 3, MinCalls: 1, Recovery: time.Second})
	g.run([]step{{0, "ggfgf", "pass x5", ""}, {0, "fg", "pass, b", "closed-open"}})
}

// A row of failures lasts until a call succeeds, no matter how long that takes; it ends with its
// state, and if it exceeds a new threshold, the breaker trips with the next failure.
func TestConsecutiveErrors(t *testing.T) {
	rule := breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 3, Recovery: time.Second}
	g := newGuard(t, rule)
	g.run([]step{
		{0, "ffgffg", "pass x6", ""},
		{time.Hour, "ff", "pass x2", ""},
		{25 * time.Hour, "fg", "pass, b", "closed-open"},
		{25*time.Hour + time.Second, "gff", "pass x3", "open-halfOpen halfOpen-closed"},
	})
	status := g.table().Status()[0]
	assert.Equal(t, [2]int64{2, 2}, [2]int64{status.Calls, status.Bad})
	rule.Threshold = 1
	g.load(rule)
	assert.Equal(t, "pass x2, b", g.calls("gfg"))
	assert.Equal(t, "closed-open", g.changes())

	g = newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ConsecutiveErrors, Recovery: time.Second})
	assert.Equal(t, "pass x2, b", g.calls("gfg"), "a threshold of 0 is the first")
}

// A row of failures from another strategy doesn't count.
func TestConsecutiveErrorsAfterAnother(t *testing.T) {
	count := breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 4, MinCalls: 1}
	row := breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ConsecutiveErrors, Threshold: 3}
	g := newGuard(t, count)
	assert.Equal(t, "pass x3", g.calls("fff"))
	g.load(row)
	assert.Equal(t, "pass x2", g.calls("ff"))
	g.load(count)
	assert.Equal(t, "pass x3", g.calls("fff"))
	assert.Empty(t, g.changes())
}

// By default the breaker of a resource that is called once per second can trip.
func TestOneCallASecond(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Threshold: 0.5})
	g.run([]step{
		{0, "f", "pass", ""},
		{1 * time.Second, "f", "pass", ""},
		{2 * time.Second, "f", "pass", ""},
		{3 * time.Second, "f", "pass", ""},
		{4 * time.Second, "fg", "pass, b", "closed-open"},
	})
}

// A call is slow if it takes longer than SlowRT, not if it takes as long.
func TestSlowRatio(t *testing.T) {
	rule := breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.SlowRatio, SlowRT: 100 * ms, Threshold: 1, MinCalls: 2, Recovery: time.Second}
	g := newGuard(t, rule)
	assert.Equal(t, "pass", g.call("orders", 100*ms, errOwn))
	assert.Equal(t, "pass", g.call("orders", 100*ms+1, nil))
	g.at(time.Minute)
	assert.Equal(t, "pass x2, b", g.calls("sss"))
	assert.Equal(t, "closed-open", g.changes())
}

// Counts slide: a call counts exactly while it is younger than the interval, wherever a bucket
// begins. With one bucket, counting restarts at each interval.
func TestSlidingStatistics(t *testing.T) {
	rule := breaker.Rule{
		ID: "b", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 4, MinCalls: 1, Interval: time.Second, Recovery: time.Second,
	}
	g := newGuard(t, rule)
	g.run([]step{{950 * ms, "ff", "pass x2", ""}, {1050 * ms, "ffg", "pass x2, b", "closed-open"}})
	g = newGuard(t, rule)
	g.run([]step{{950 * ms, "ff", "pass x2", ""}, {1900 * ms, "fff", "pass x3", ""}, {1950 * ms, "fg", "pass, b", "closed-open"}})
	rule.Buckets = 1
	g = newGuard(t, rule)
	g.run([]step{{950 * ms, "ff", "pass x2", ""}, {1050 * ms, "fff", "pass x3", ""}, {1999 * ms, "fg", "pass, b", "closed-open"}})
}

// A breaker trips at exactly its threshold, and not below.
// known bug 82
func TestEquality(t *testing.T) {
	for _, tt := range []struct {
		strategy   breaker.Strategy
		threshold  float64
		calls, bad int
		trips      bool
	}{
		{breaker.ErrorRatio, 1, 5, 5, true},
		{breaker.ErrorRatio, 1, 5, 4, false},
		{breaker.ErrorRatio, 0, 5, 1, true},
		{breaker.ErrorRatio, 0, 5, 0, false},
		{breaker.ErrorRatio, 0.5, 6, 3, true},
		{breaker.ErrorRatio, 0.5, 7, 3, false},
		{breaker.ErrorRatio, 0.07, 100, 7, true}, // 0.07 × 100 is more than 7
		{breaker.ErrorRatio, 0.07, 100, 6, false},
		{breaker.ErrorRatio, 0.29, 100, 29, true},
		{breaker.ErrorRatio, 0.1, 30, 3, true},
		{breaker.SlowRatio, 1, 5, 5, true},
		{breaker.SlowRatio, 1, 5, 4, false},
		{breaker.SlowRatio, 0, 5, 1, true},
		{breaker.SlowRatio, 0, 5, 0, false},
		{breaker.ErrorCount, 0, 5, 1, true},
		{breaker.ErrorCount, 0, 5, 0, false},
		{breaker.ErrorCount, 5, 5, 5, true},
		{breaker.ErrorCount, 5, 9, 4, false},
		{breaker.ErrorCount, 4.5, 9, 4, false},
		{breaker.ErrorCount, 4.5, 9, 5, true},
		{breaker.ErrorCount, 1, 4, 4, false}, // too few calls
	} {
		t.Run(fmt.Sprintf("%v %v of %d: %d", tt.strategy, tt.threshold, tt.calls, tt.bad), func(t *testing.T) {
			rule := breaker.Rule{ID: "b", Resource: "orders", Strategy: tt.strategy, Threshold: tt.threshold, Interval: time.Hour}
			if tt.strategy == breaker.SlowRatio {
				rule.SlowRT = 100 * ms
			}
			if rule.MinCalls = tt.calls; tt.calls < 5 {
				rule.MinCalls = 5
			}
			g := newGuard(t, rule)
			var entries []engine.Entry
			for range tt.calls {
				entries = append(entries, g.open("orders"))
			}
			for i, e := range entries {
				if i == tt.calls-tt.bad {
					g.clock.Advance(101 * ms)
				}
				if i >= tt.calls-tt.bad {
					e.Fail(errOwn)
				}
				e.Exit()
			}
			want := breaker.Closed
			if tt.trips {
				want = breaker.Open
			}
			assert.Equal(t, want, g.state("b"))
		})
	}
}

// A half-open breaker admits at most the rule's number of probes at a time, and closes when that
// many have succeeded.
// known bug 81
func TestProbes(t *testing.T) {
	rule := quick("b")
	rule.Probes = 3
	g := newGuard(t, rule)
	g.calls("f")
	g.at(time.Second)
	var probes []engine.Entry
	for range 3 {
		probes = append(probes, g.open("orders"))
	}
	assert.Equal(t, "b x5", g.calls("ggggg"))
	assert.Equal(t, 3, g.status("b", "orders").Probes)
	probes[0].Exit()
	assert.Equal(t, "b", g.calls("g"), "two are out, and one more to come at most")
	probes[1].Exit()
	probes[2].Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
	assert.Equal(t, "closed-open open-halfOpen halfOpen-closed", g.changes())
}

// One bad probe is enough, and the results of the others then change nothing.
func TestOneBadProbe(t *testing.T) {
	rule := quick("b")
	rule.Probes = 3
	g := newGuard(t, rule)
	g.calls("f")
	g.at(time.Second)
	a, b, c := g.open("orders"), g.open("orders"), g.open("orders")
	a.Exit()
	g.clock.Advance(10 * ms)
	b.Fail(errOwn)
	b.Exit()
	c.Exit()
	assert.Equal(t, breaker.Open, g.state("b"))
	assert.Equal(t, start.Add(2*time.Second+10*ms).UTC(), g.status("b", "orders").RetryAt)
	assert.Equal(t, "closed-open open-halfOpen halfOpen-open", g.changes())
}

// A probe that never ends times out; then another may go. If it ends after all, its result still
// counts.
// known bug 80
func TestLostProbe(t *testing.T) {
	rule := quick("b")
	rule.ProbeTimeout = 300 * ms
	g := newGuard(t, rule)
	g.calls("f")
	g.at(time.Second)
	lost := g.open("orders")
	g.at(time.Second + 299*ms)
	assert.Equal(t, "b", g.calls("g"))
	g.at(time.Second + 300*ms)
	second := g.open("orders")
	assert.Equal(t, "b", g.calls("g"))
	g.at(time.Second + 650*ms)
	assert.Equal(t, "pass", g.calls("g"), "the third goes well")
	assert.Equal(t, breaker.Closed, g.state("b"))
	lost.Fail(errOwn)
	lost.Exit()
	second.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"), "which the first knows nothing of")
	assert.Equal(t, int64(0), g.status("b", "orders").Calls)

	g = newGuard(t, rule) // a resource whose calls take longer than the lease closes too
	g.calls("f")
	g.at(time.Second)
	slow := g.open("orders")
	g.at(time.Minute)
	slow.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
}

// When a lost probe succeeds after all, fewer probes are needed, and the others are in flight: the
// first of them to time out frees no slot. RetryAfter and Ask already take that into account.
// known bug 186
func TestLostProbeThatEndsWell(t *testing.T) {
	rule := quick("b")
	rule.Probes, rule.ProbeTimeout = 3, 300*ms
	g := newGuard(t, rule)
	g.calls("f")
	g.at(time.Second)
	lost := g.open("orders")
	g.at(time.Second + 100*ms)
	second := g.open("orders")
	g.at(time.Second + 200*ms)
	third := g.open("orders")
	g.at(time.Second + 300*ms)
	fourth := g.open("orders")
	lost.Exit()
	assert.Equal(t, 3, g.status("b", "orders").Probes)
	g.at(time.Second + 400*ms) // the second times out: two are in flight, and two successes are needed
	x, err := g.Explain(t.Context(), "orders", nil)
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome, "%v", x)
	assert.Equal(t, start.Add(time.Second+500*ms).UTC(), g.status("b", "orders").RetryAt)
	assert.Equal(t, "b", g.calls("g"))
	g.at(time.Second + 500*ms) // the third as well
	assert.Equal(t, "pass", g.calls("g"))
	fourth.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
	second.Exit()
	third.Exit()
}

// Calls from an older state change nothing: neither a newer closed state, nor a half-open one,
// which only its probes decide.
func TestLateCompletions(t *testing.T) {
	g := newGuard(t, quick("b"))
	fails, works := g.open("orders"), g.open("orders")
	fails2 := g.open("orders")
	g.calls("f")
	assert.Equal(t, breaker.Open, g.state("b"))
	g.at(time.Second)
	probe := g.open("orders")
	works.Exit()
	assert.Equal(t, breaker.HalfOpen, g.state("b"), "it does not close it")
	fails.Fail(errOwn)
	fails.Exit()
	assert.Equal(t, breaker.HalfOpen, g.state("b"), "nor open it")
	probe.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
	fails2.Fail(errOwn)
	fails2.Exit()
	assert.Equal(t, breaker.Closed, g.state("b"))
	assert.Equal(t, "closed-open open-halfOpen halfOpen-closed", g.changes())
}

// The share of calls that pass rises in three steps.
// known bug 83
func TestRamp(t *testing.T) {
	rule := quick("b")
	rule.Ramp, rule.MinCalls, rule.Threshold, rule.Interval = 10*time.Second, 3, 0.5, time.Second
	g := newGuard(t, rule)
	share := func(at time.Duration) (passed int) {
		g.at(at)
		for range 1000 {
			if e, err := g.enter("orders"); err == nil {
				e.Exit()
				passed++
			}
		}
		return passed
	}
	g.calls("fff")
	g.at(time.Second)
	g.calls("g")
	assert.Equal(t, breaker.Recovering, g.state("b"))
	assert.Equal(t, []int{10, 100, 500, 1000}, []int{
		share(time.Second), share(11 * time.Second), share(21 * time.Second), share(31 * time.Second),
	})
	assert.Equal(t, "closed-open open-halfOpen halfOpen-recovering recovering-closed", g.changes())

	// It trips while recovering as when closed.
	g.at(40 * time.Second)
	g.calls("fff")
	g.changes()
	g.at(41 * time.Second)
	g.calls("g")
	g.at(63 * time.Second) // half of the calls pass
	assert.Equal(t, "pass, b, pass, b, pass, b x2", g.calls("fffffff"))
	assert.Equal(t, "open-halfOpen halfOpen-recovering recovering-open", g.changes())
}

// While a breaker recovers, a call that it refuses takes nothing from other rules.
func TestRampRefusesBeforeTaking(t *testing.T) {
	rule := quick("b")
	rule.Ramp = 10 * time.Second
	var took int
	spy := trial.AskOnly(func(*engine.Invocation) engine.Verdict { return engine.Verdict{} })
	g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(counter{spy, &took}, engine.Before("breaker"))}, rule)
	g.calls("f")
	g.at(time.Second)
	g.calls("g")
	took = 0
	assert.Equal(t, "pass, b x99, pass", trial.Runs([]string{g.calls("g"), g.calls(repeat('g', 99)), g.calls("g")}))
	assert.Equal(t, 2, took)
}

type counter struct {
	trial.AskOnly
	took *int
}

func (counter) Name() string { return "counter" }
func (counter) Direct() bool { return false }
func (c counter) Take(*engine.Invocation) engine.Verdict {
	*c.took++
	return engine.Verdict{}
}

func repeat(c rune, n int) string {
	calls := make([]rune, n)
	for i := range calls {
		calls[i] = c
	}
	return string(calls)
}

// A probe that a later rule refuses is given back at once, any number of times, and listeners see
// no change.
// known bug 78, 79
func TestRefusedProbe(t *testing.T) {
	shut := true
	gate := trial.AskOnly(func(*engine.Invocation) engine.Verdict { return engine.Verdict{} })
	late := latecomer{gate, &shut, engine.NewCounted(core.BlockError{Resource: "orders", Rule: "late"}, nil, nil, nil)}
	g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(late, engine.After("breaker"))}, quick("b"))
	shut = false
	g.calls("f")
	shut = true
	g.at(time.Second)
	for range 1000 {
		_, err := g.enter("orders")
		require.ErrorIs(t, err, late.refusal)
	}
	assert.Equal(t, "closed-open open-halfOpen", g.changes())
	assert.Zero(t, g.status("b", "orders").Probes)
	shut = false
	assert.Equal(t, "pass", g.calls("g"))
	assert.Equal(t, "halfOpen-closed", g.changes())
}

// latecomer refuses when it takes, not when asked.
type latecomer struct {
	trial.AskOnly
	shut    *bool
	refusal *core.BlockError
}

func (latecomer) Name() string { return "latecomer" }
func (l latecomer) Take(*engine.Invocation) engine.Verdict {
	if *l.shut {
		return engine.Verdict{Block: l.refusal}
	}
	return engine.Verdict{}
}

// Two breakers of a resource don't block each other's probe.
// known bug 84
func TestTwoBreakers(t *testing.T) {
	a, b := quick("a"), quick("b")
	b.Recovery = 3 * time.Second
	g := newGuard(t, a, b)
	g.run([]step{
		{0, "f", "pass", "closed-open closed-open"},
		{1500 * ms, repeat('g', 100), "b x100", ""},
		{3 * time.Second, "g", "pass", "open-halfOpen open-halfOpen halfOpen-closed halfOpen-closed"},
	})
	err := g.tryLoad([]breaker.Rule{{Resource: "orders", Threshold: 0.5}, {Resource: "orders", Threshold: 0.5}}, nil)
	assert.ErrorContains(t, err, "are the same: remove one")
}

// A call that waits takes a probe slot after its wait, not before, and is refused if the breaker
// opened while it waited.
func TestAskedAgainAfterTheWait(t *testing.T) {
	g := newGuard(t)
	queue := []flow.Rule{{ID: "queue", Resource: "orders", Threshold: 10, Behavior: flow.Throttle, MaxWait: time.Minute}}
	require.NoError(t, g.tryLoad([]breaker.Rule{quick("b")}, queue))
	first := g.open("orders")
	results := make(chan error, 1)
	wait := func() {
		go func() {
			e, err := g.enter("orders")
			e.Exit()
			results <- err
		}()
		g.clock.AwaitParked(1)
	}
	wait()
	first.Fail(errOwn)
	first.Exit() // opens the breaker
	g.clock.Advance(100 * ms)
	err := <-results
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, core.KindBreaker, core.KindOf(err))

	g.at(5 * time.Second)
	require.NoError(t, g.tryLoad([]breaker.Rule{quick("b")}, queue))
	probe := g.open("orders") // the queue is empty: this one is the probe
	_, err = g.enter("orders")
	require.ErrorIs(t, err, core.ErrBlocked, "while the probe is out")
	probe.Fail(errOwn)
	probe.Exit()
	g.clock.Advance(time.Second - 1)
	_, err = g.enter("orders")
	require.ErrorIs(t, err, core.ErrBlocked)

	require.NoError(t, g.tryLoad([]breaker.Rule{quick("b")}, []flow.Rule{{ID: "queue", Resource: "orders", Threshold: 1, Interval: 10 * time.Second, Behavior: flow.Throttle, MaxWait: time.Minute}}))
	g.clock.Advance(time.Second)
	wait()
	assert.Equal(t, breaker.Open, g.state("b"), "the probe is not taken while the call waits")
	assert.Zero(t, g.status("b", "orders").Probes)
	g.clock.Advance(10 * time.Second)
	require.NoError(t, <-results)
	assert.Equal(t, breaker.Closed, g.state("b"))
}

// A probe that another breaker refuses after the wait doesn't change a breaker either.
// known bug 79
func TestProbeRefusedAfterTheWait(t *testing.T) {
	g := newGuard(t)
	long := quick("long")
	long.Recovery = 10 * time.Second
	queue := []flow.Rule{{ID: "queue", Resource: "orders", Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Minute}}
	require.NoError(t, g.tryLoad([]breaker.Rule{quick("b"), long}, queue))
	first := g.open("orders")
	results := make(chan error, 1)
	go func() {
		e, err := g.enter("orders")
		e.Exit()
		results <- err
	}()
	g.clock.AwaitParked(1)
	first.Fail(errOwn)
	first.Exit()
	g.clock.Advance(time.Second) // b may admit a probe again
	err := <-results
	require.ErrorIs(t, err, core.ErrBlocked)
	require.ErrorContains(t, err, "long")
	assert.Equal(t, breaker.Open, g.state("b"))
	assert.Equal(t, "closed-open closed-open", g.changes())
}

// After a wait that was not announced, the breaker's earlier admission stands if still valid.
func TestWaitAfterTheBreaker(t *testing.T) {
	var wait time.Duration
	late := waiter{trial.AskOnly(func(*engine.Invocation) engine.Verdict { return engine.Verdict{} }), &wait}
	g := newGuardWith(t, engine.Config{Chain: trial.Chain().With(late, engine.After("breaker"))}, quick("b"))
	g.clock.SetSleep(clocks.SleepAdvance)
	g.calls("f")
	g.at(time.Second)
	wait = 100 * ms
	assert.Equal(t, "pass", g.calls("g"))
	assert.Equal(t, "closed-open open-halfOpen halfOpen-closed", g.changes(), "one probe, not two")
	g.calls("f")
	g.at(5 * time.Second)
	wait = 2 * time.Second // longer than the probe timeout
	assert.Equal(t, "pass", g.calls("g"))
	assert.Equal(t, breaker.Closed, g.state("b"))
}

type waiter struct {
	trial.AskOnly
	wait *time.Duration
}

func (waiter) Name() string { return "waiter" }
func (w waiter) Take(inv *engine.Invocation) engine.Verdict {
	return engine.Verdict{Wait: *w.wait}
}

// Breakers count calls, not units, and no refused calls.
func TestCountsCalls(t *testing.T) {
	g := newGuard(t, breaker.Rule{ID: "b", Resource: "orders", Strategy: breaker.ErrorCount, Threshold: 2, MinCalls: 1})
	e, err := g.Enter(t.Context(), "orders", []engine.Option{engine.Units(100)})
	require.NoError(t, err)
	e.Fail(errOwn)
	e.Exit()
	assert.Equal(t, int64(1), g.status("b", "orders").Bad)
	require.NoError(t, g.tryLoad([]breaker.Rule{quick("b")}, []flow.Rule{{Resource: "orders", Threshold: 0}}))
	for range 10 {
		_, err := g.enter("orders")
		require.Equal(t, core.KindFlow, core.KindOf(err))
	}
	assert.Equal(t, breaker.Closed, g.state("b"))
}

// Refused calls report the time until the next probe.
func TestRetryAfter(t *testing.T) {
	g := newGuard(t, quick("b"))
	g.calls("f")
	g.clock.Advance(300 * ms)
	_, err := g.enter("orders")
	b, ok := errors.AsType[*core.BlockError](err)
	require.True(t, ok)
	assert.Equal(t, 700*ms, comeAgain(t, b))
	g.at(time.Second)
	e := g.open("orders")
	assert.Equal(t, time.Second, comeAgain(t, b), "until the probe is no longer waited for")
	e.Exit()
	assert.Zero(t, comeAgain(t, b))
}
