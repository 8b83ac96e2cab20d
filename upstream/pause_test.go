package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

// No call of the resource passes before the time that an answer has given, and all do once a tenth
// more has passed. The refusal knows when. Other resources go on.
func TestAnAnswerPausesItsResource(t *testing.T) {
	g := newGuard(t, Rule{Resource: "*", Obey: true})
	running := g.enter(get)
	require.True(t, g.call(get, asks(20*time.Second)))
	for _, d := range []time.Duration{0, 10 * time.Second, 10*time.Second - 1} {
		g.after(d)
		b := g.refused(get)
		wait, known := b.RetryAfter()
		left := 20*time.Second - time.Unix(0, g.Now()).Sub(trial.Start)
		assert.True(t, known)
		assert.GreaterOrEqual(t, wait, left)
		assert.LessOrEqual(t, wait, left+2*time.Second)
		assert.True(t, g.call("POST api.example.com", nil))
	}
	running.Fail(errFull) // says no time
	running.Exit()
	g.after(1 + 2*time.Second)
	for range 100 {
		assert.True(t, g.call(get, nil))
	}
}

// Within the tenth, the probability of passing grows evenly from 0 to 1, and the times at which
// refused calls are to return are spread evenly.
func TestAPauseEndsSpread(t *testing.T) {
	g := newGuard(t, Rule{Resource: get, Obey: true})
	require.True(t, g.call(get, asks(100*time.Second)))
	const n = 10_000
	var later [10]int
	for range n {
		wait, _ := g.refused(get).RetryAfter()
		later[(wait-100*time.Second)/time.Second]++
	}
	for _, count := range later {
		assert.InDelta(t, n/10, count, 150)
	}
	g.after(100 * time.Second)
	for part := range 10 {
		passed := 0
		for range n / 10 {
			if g.call(get, nil) {
				passed++
			}
		}
		assert.InDelta(t, n/10*part/10, passed, 60, "%d", part)
		g.after(time.Second)
	}
}

// A later answer extends a pause and never shortens it; maxPause bounds it; answers without a time
// that could be meant change nothing.
func TestLaterAnswersOnlyExtend(t *testing.T) {
	g := newGuard(t, Rule{Resource: get, Obey: true, MaxPause: time.Minute})
	var running []engine.Entry
	for range 20 {
		running = append(running, g.enter(get))
	}
	until := func() time.Duration {
		f := trial.Details[Stats](t, g.Engine, "upstream:"+get)
		if f.Paused == 0 {
			return 0
		}
		return f.Pauses[0].Until.Sub(trial.Start)
	}
	for i, step := range []struct{ asked, want time.Duration }{
		{0, 0}, {-time.Hour, 0}, {math.MinInt64, 0}, {math.MaxInt64, 0}, {absurd + 1, 0},
		{10 * time.Second, 10 * time.Second}, {5 * time.Second, 10 * time.Second}, {-1, 10 * time.Second},
		{20 * time.Second, 20 * time.Second}, {absurd, time.Minute}, {time.Hour, time.Minute}, {time.Second, time.Minute},
	} {
		running[i].Fail(asks(step.asked)) // at once, before it exits
		assert.Equal(t, step.want, until(), "%v", step)
	}
	for _, e := range running {
		e.Exit()
	}
	running[0].Fail(asks(time.Hour)) // stale
	assert.Equal(t, time.Minute, until())
}

// A host's pause stops all its resources, and no other host's.
func TestAHostPauses(t *testing.T) {
	g := newGuard(t, Rule{Resource: "*", Obey: true, Scope: PerHost})
	require.True(t, g.call(get, asks(time.Minute)))
	g.refused(get)
	g.refused("POST api.example.com")
	assert.True(t, g.call("GET www.example.com", nil))
}

// Refusals of other rules, even if marked, and errors that name no time pause nothing.
func TestRefusalsAreNoAnswers(t *testing.T) {
	g := newGuard(t, Rule{Resource: get, Obey: true, Throttle: Throttle{K: 1}})
	block := core.NewBlockError(core.BlockError{Kind: core.KindFlow, Resource: get}, nil)
	for _, err := range []error{
		block, asksOf(block), fmt.Errorf("wrapped: %w", asksOf(block)), asksOf(errors.Join(block, context.DeadlineExceeded)),
	} {
		require.True(t, g.call(get, err))
		require.True(t, g.call(get, err)) // or the throttle would refuse it
	}
	s := trial.Details[Stats](t, g.Engine, "upstream:"+get).Upstreams[0]
	assert.Zero(t, s.Requests)
}

func asksOf(err error) error { return engine.Overloaded(err, time.Minute) }

// A mark is found below other marks and wrapped by errors, and doesn't change whether a call failed.
func TestMarks(t *testing.T) {
	for _, row := range []struct {
		err    error
		failed int64
	}{
		{asks(time.Minute), 1}, {engine.Ignore(asks(time.Minute)), 0}, {engine.Overloaded(engine.Ignore(errFull), time.Minute), 0},
		{engine.Certain(asks(time.Minute)), 1}, {fmt.Errorf("x: %w", asks(time.Minute)), 1},
		{engine.Overloaded(engine.Certain(errFull), time.Minute), 1},
	} {
		g := newGuard(t, Rule{Resource: get, Obey: true})
		require.True(t, g.call(get, row.err))
		g.refused(get)
		r, _ := g.FindResource(get)
		assert.Equal(t, row.failed, r.Totals().Exception)
	}
	assert.NoError(t, engine.Overloaded(nil, time.Minute))
	assert.ErrorIs(t, asks(0), errFull)
}

// 64 goroutines call 1,000 hosts, and each host answers when to come back. No call is admitted before
// that, beyond the calls in flight when the answer came.
func TestNobodyAsksBeforeRetryAfter(t *testing.T) {
	const hosts, callers = 1000, 64
	g := newGuard(t, Rule{Resource: "*", Obey: true})
	var answered [hosts]atomic.Bool // set once the answer has been reported
	var early, served atomic.Int64
	var all sync.WaitGroup
	round := func(until int64) {
		for caller := range callers {
			all.Go(func() {
				for i := range hosts {
					host := (i + caller*hosts/callers) % hosts
					paused := answered[host].Load()
					e, err := g.Enter(t.Context(), fmt.Sprintf("GET host%d", host), nil)
					if err != nil {
						continue
					}
					if served.Add(1); paused && g.Now() < until {
						early.Add(1)
					}
					e.Fail(asks(time.Duration(1+host%60) * time.Second))
					answered[host].Store(true)
					e.Exit()
				}
			})
		}
		all.Wait()
	}
	round(math.MaxInt64)
	assert.Zero(t, early.Load())
	assert.GreaterOrEqual(t, served.Load(), int64(hosts))
	for second := range 60 { // those of earlier seconds come back, and pause again
		before := served.Load()
		for host := range hosts {
			if 1+host%60 > second {
				_, err := g.Enter(t.Context(), fmt.Sprintf("GET host%d", host), nil)
				require.Error(t, err, "%d in second %d", host, second)
			}
		}
		require.Equal(t, before, served.Load())
		g.after(time.Second)
	}
}

// At most 1,000 pauses are kept; further answers are counted. Room is made by pauses that have ended.
func TestPausesAreBounded(t *testing.T) {
	g := newGuard(t, Rule{Resource: "*", Obey: true})
	details := func() Stats { return trial.Details[Stats](t, g.Engine, "upstream:*") }
	for i := range 3 * maxPaused {
		require.True(t, g.call(fmt.Sprintf("GET host%d", i), asks(time.Second)))
	}
	f := details()
	assert.Equal(t, maxPaused, f.Paused)
	assert.EqualValues(t, 2*maxPaused, f.Missed)
	assert.Len(t, f.Pauses, maxShown)
	g.after(1100 * ms)
	assert.Zero(t, details().Paused)
	require.True(t, g.call("GET host5000", asks(time.Second)))
	assert.Len(t, *g.Rules().Family(core.KindUpstream).(*table).pauses[g.record()].all.Load(), 1)
}

func (g *guard) record() *engine.Record {
	return g.Rules().Family(core.KindUpstream).(*table).Record(0)
}

// Names beyond the cap on resources have pauses of their own, and refusals that know them.
func TestPausesBeyondTheCap(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1}}, Rule{Resource: "*", Obey: true})
	for _, name := range []string{"GET a", "GET b", "GET c"} {
		e := g.enter("GET a")
		defer e.Exit()
		require.True(t, g.call(name, nil))
	}
	require.True(t, g.call("GET b", asks(time.Minute)))
	wait, known := g.refused("GET b").RetryAfter()
	assert.True(t, known)
	assert.GreaterOrEqual(t, wait, time.Minute)
	assert.True(t, g.call("GET c", nil))
}

// A changed rule keeps its pauses, and one that is renamed or off for a while does too. Without obey
// they end.
func TestReloadsKeepPauses(t *testing.T) {
	r := Rule{ID: "x", Resource: get, Obey: true}
	changed, renamed, off, without := r, r, r, r
	changed.Retries.Least, renamed.ID, off.Mode, without.Obey, without.Throttle.K = 5, "y", spec.Off, false, 2
	g := newGuard(t, r)
	require.True(t, g.call(get, asks(time.Minute)))
	for _, next := range []Rule{changed, renamed, r} {
		g.load(next)
		g.refused(get)
	}
	g.load(off)
	assert.True(t, g.call(get, nil))
	g.load(r)
	g.refused(get)
	g.load(without)
	assert.True(t, g.call(get, nil))
	g.load(r)
	assert.True(t, g.call(get, nil))
}

// A rule in shadow mode counts the calls that a pause would have refused.
func TestPausesInShadowMode(t *testing.T) {
	g := newGuard(t, Rule{Resource: get, Obey: true, Mode: spec.Shadow})
	for range 3 {
		require.True(t, g.call(get, asks(time.Minute)))
	}
	f := trial.Figures(t, g.Engine, "upstream:"+get)
	assert.EqualValues(t, 2, f.ShadowBlocked)
	assert.Zero(t, f.Refused)
}

func TestExplainPause(t *testing.T) {
	g := newGuard(t, Rule{Resource: get, Obey: true})
	require.True(t, g.call(get, asks(10*time.Second)))
	explain := func() core.Explanation {
		x, err := g.Explain(t.Context(), get, nil)
		require.NoError(t, err)
		return x
	}
	x := explain()
	assert.Equal(t, core.Refused, x.Outcome)
	assert.Equal(t, trial.Start.Add(10*time.Second).UTC(), x.Next)
	g.after(10*time.Second + 250*ms)
	x = explain()
	assert.Equal(t, core.Unknown, x.Outcome)
	assert.Equal(t, "a pause that the server asked for ends: 25 % of the calls pass", x.Rules[0].Why)
	assert.Contains(t, x.String(), "passes or is refused by chance")
	g.after(time.Second)
	assert.Equal(t, core.Passes, explain().Outcome)
}

// A call that waits for another rule is decided on after its wait: by pauses that have begun since, and
// by the retries in flight then. It holds nothing while it waits.
func TestCallsThatWait(t *testing.T) {
	e, clock := trial.Engine(t, engine.Config{})
	require.NoError(t, e.Update(func(b *engine.SnapshotBuilder) error {
		queue := flow.Rule{Resource: get, Threshold: 1, Behavior: flow.Throttle, MaxWait: time.Minute}
		return errors.Join(flow.Compile(b, []flow.Rule{queue}), compile(b, []Rule{{ID: "t", Resource: get, Obey: true, Retries: Retries{Least: 1}}}, 1))
	}))
	g := &guard{e, t, clock}
	first := g.enter(get)
	type result struct {
		entry engine.Entry
		err   error
	}
	waits := func(n int) chan result {
		done := make(chan result, 1)
		go func() {
			entry, err := g.Enter(t.Context(), get, []engine.Option{engine.Retry()})
			done <- result{entry, err}
		}()
		clock.AwaitParked(n)
		return done
	}
	one, two := waits(1), waits(2)
	assert.Zero(t, g.status().Retries)
	g.after(time.Second)
	running := <-one
	require.NoError(t, running.err)
	assert.EqualValues(t, 1, g.status().Retries)
	g.after(time.Second)
	require.ErrorIs(t, (<-two).err, core.ErrRetryBudget)
	running.entry.Exit()
	g.after(100 * ms)
	taken := <-waits(0)
	require.NoError(t, taken.err)
	taken.entry.Exit()
	three := waits(1)
	first.Fail(asks(time.Minute))
	first.Exit()
	g.after(time.Second)
	last := (<-three).err
	require.Equal(t, core.KindUpstream, core.KindOf(last))
	require.NotErrorIs(t, last, core.ErrRetryBudget)
	assert.Zero(t, g.status().Retries)
}
