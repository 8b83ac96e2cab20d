package upstream

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/node"
)

func throttled() Rule { return Rule{ID: "t", Resource: get, Throttle: Throttle{K: 2}} }

func (g *guard) status() Status {
	g.t.Helper()
	return trial.Details[Stats](g.t, g.Engine, "t").Upstreams[0]
}

// The law of the SRE book, its cap, and a server that seems to be dead.
func TestProbability(t *testing.T) {
	for _, row := range []struct {
		requests, accepts int64
		k, want           float64
	}{
		{0, 0, 2, 0}, {1, 0, 2, 0.5}, {3, 0, 2, 0.75}, {100, 50, 2, 0}, {99, 25, 2, 0.49}, {100, 50, 1, 50.0 / 101},
		{98, 0, 2, 98.0 / 99}, {99, 0, 2, 1}, {1_000_000, 0, 2, 1}, {1_000_000, 1, 2, 0.99}, {10, 10, 1, 0}, {math.MaxInt32, 1, 2, 0.99},
	} {
		got := tally{row.requests, row.accepts}.probability(row.k)
		if row.requests == 98 {
			assert.InDelta(t, 1.0, got, 0.02)
			continue
		}
		assert.InDelta(t, row.want, got, 1e-9, "%+v", row)
	}
}

// A dead server gets one call a second, at any rate of calls, once it has failed to answer a few.
func TestADeadServerGetsACallASecond(t *testing.T) {
	g := newGuard(t, throttled())
	dead := engine.Overloaded(errors.New("connection refused"), 0)
	for i := range 10_000 { // a thousand a second
		g.call(get, dead)
		if i%2 == 0 {
			g.after(2 * ms)
		}
	}
	for range 30 {
		g.clock.AdvanceTo(floor(g.Now()) + second)
		passed := 0
		for range 1000 {
			if g.call(get, dead) {
				passed++
			}
		}
		assert.Equal(t, 1, passed)
	}
	assert.EqualValues(t, 1, g.status().Probability)
	wait, known := g.refused(get).RetryAfter()
	assert.True(t, known)
	g.after(wait)
	assert.True(t, g.call(get, dead))
}

// Once a server that accepted nothing for longer than the interval accepts everything, the share of
// the calls that pass grows from 1 % to all within three and a half intervals, at any rate of calls.
func TestTheThrottleRecovers(t *testing.T) {
	race.OneGoroutine(t)
	for _, rate := range []int{20, 1000} {
		g := newGuard(t, throttled())
		for range 150 * rate {
			g.call(get, asks(0))
			g.after(time.Second / time.Duration(rate))
		}
		refused := 0 // the last one
		for i := range 500 * rate {
			if !g.call(get, nil) {
				refused = i
			}
			g.after(time.Second / time.Duration(rate))
		}
		assert.Less(t, refused, 420*rate)
		t.Logf("at %d calls/s, all pass after %d s", rate, refused/rate)
	}
}

// Calls count as the page says: a plain failure is an answer, a timeout and a marked error are not
// accepted, and neutral calls and refusals by other rules are neither.
func TestWhatCounts(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want tally
	}{
		"success":          {nil, tally{1, 1}},
		"failure":          {errors.New("500"), tally{1, 1}},
		"overload":         {asks(0), tally{1, 0}},
		"ignored overload": {engine.Ignore(asks(0)), tally{1, 0}},
		"timeout":          {context.DeadlineExceeded, tally{1, 0}},
		"nested refusal":   {core.NewBlockError(core.BlockError{}, nil), tally{0, 0}},
	} {
		g := newGuard(t, throttled())
		require.True(t, g.call(get, row.err))
		s := g.status()
		assert.Equal(t, row.want, tally{s.Requests, s.Accepts}, name)
	}
	g := newGuard(t, throttled())
	ctx, cancel := context.WithCancel(t.Context())
	e, err := g.Enter(ctx, get, nil)
	require.NoError(t, err)
	cancel()
	e.Fail(context.Canceled)
	e.Exit()
	running := g.enter(get)
	assert.Zero(t, g.status().Requests, "neither a canceled call, nor one in flight")
	running.Exit()
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		return errors.Join(flow.Compile(b, []flow.Rule{{Resource: get}}), compile(b, []Rule{throttled()}, 1))
	}))
	for range 10 {
		_, err = g.Enter(t.Context(), get, nil)
		require.Equal(t, core.KindFlow, core.KindOf(err))
	}
	assert.EqualValues(t, 1, g.status().Requests)
}

// A burst of first calls to a healthy server is not refused, however long the answers take.
func TestFirstCallsAreNoOverload(t *testing.T) {
	g := newGuard(t, throttled())
	var running []engine.Entry
	for range 500 {
		running = append(running, g.enter(get))
	}
	for _, e := range running {
		e.Exit()
	}
	assert.EqualValues(t, 500, g.status().Accepts)
}

// The first call in a second that another rule then refuses leaves its place to the next.
func TestTheFirstCallIsGivenBack(t *testing.T) {
	x := newThrottle(time.Minute, 1)
	for range 200 {
		x.complete(0, false)
	}
	first, ok := x.admit(second, 2)
	require.True(t, ok)
	_, ok = x.admit(second, 2)
	require.False(t, ok)
	x.giveBack(first)
	_, ok = x.admit(second, 2)
	require.True(t, ok)
	x.giveBack(first - second) // of an earlier second
	_, ok = x.admit(second, 2)
	require.False(t, ok)
}

// In shadow mode, calls that would have been refused are no requests that got an answer.
func TestThrottleInShadowMode(t *testing.T) {
	r := throttled()
	r.Mode = spec.Shadow
	g := newGuard(t, r)
	for range 1000 {
		require.True(t, g.call(get, asks(0)))
	}
	f := trial.Figures(t, g.Engine, "t")
	assert.Zero(t, f.Refused)
	assert.Greater(t, f.ShadowBlocked, int64(900))
	assert.EqualValues(t, 1000, g.status().Requests)
}

// A changed rule keeps its counts of the new interval.
func TestReloadsKeepCounts(t *testing.T) {
	g := newGuard(t, throttled())
	for range 10 {
		g.call(get, nil)
		g.after(10 * time.Second)
	}
	for _, tt := range []struct {
		interval time.Duration
		want     int64
	}{{2 * time.Minute, 10}, {15 * time.Second, 1}} { // older counts are gone then
		r := throttled()
		r.Throttle.Interval = tt.interval
		g.load(r)
		assert.InDelta(t, tt.want, g.status().Accepts, 1, tt.interval)
		g.load(throttled())
	}
}

// A healthy throttle lets its resource leave; one that refuses calls keeps it.
func TestIdleThrottles(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1}}, Rule{ID: "t", Resource: "*", Throttle: Throttle{K: 1, Interval: time.Hour}})
	require.True(t, g.call("a", nil))
	g.after(5 * time.Minute)
	require.True(t, g.call("b", asks(0)))
	_, left := g.FindResource("a")
	assert.False(t, left)
	g.after(5 * time.Minute)
	require.True(t, g.call("c", nil))
	_, stays := g.FindResource("b")
	assert.True(t, stays)
}

func TestExplainThrottle(t *testing.T) {
	g := newGuard(t, throttled())
	for range 10 {
		g.call(get, asks(0))
	}
	x, err := g.Explain(t.Context(), get, nil)
	require.NoError(t, err)
	assert.Equal(t, core.Unknown, x.Outcome)
	assert.Contains(t, x.Rules[0].Why, "% of the calls are refused: the server accepts few")
	for range 1000 {
		g.call(get, asks(0))
	}
	x, err = g.Explain(t.Context(), get, nil)
	require.NoError(t, err)
	assert.Equal(t, core.Refused, x.Outcome)
	assert.Equal(t, trial.Start.Add(time.Second).UTC(), x.Next)
	g.after(time.Second)
	x, err = g.Explain(t.Context(), get, nil)
	require.NoError(t, err)
	assert.Equal(t, core.Passes, x.Outcome)
}

// throttleTwin is a throttle that keeps every call.
type throttleTwin struct {
	interval int64
	calls    []struct {
		at       int64
		accepted bool
	}
	last int64
}

func (w *throttleTwin) sum(now int64) (sum tally) {
	width := w.interval / throttleBuckets
	oldest := now - ((now%width)+width)%width + width - w.interval
	for _, c := range w.calls {
		if c.at >= oldest {
			sum.requests++
			if c.accepted {
				sum.accepts++
			}
		}
	}
	return sum
}

// Under random scripts a throttle decides as its twin, which keeps all calls, does with the same
// random numbers.
func TestThrottleAgainstItsTwin(t *testing.T) {
	for seed := range uint64(50) {
		script := rand.New(rand.NewPCG(seed, 7))
		draws := rand.New(rand.NewPCG(seed, 0))
		x := newThrottle(20*time.Second, seed)
		twin := &throttleTwin{interval: int64(20 * time.Second), last: math.MinInt64}
		add := func(at int64, accepted bool) {
			twin.calls = append(twin.calls, struct {
				at       int64
				accepted bool
			}{at, accepted})
		}
		now, k := int64(0), 1+script.Float64()*2
		for range 2000 {
			now += script.Int64N(int64(200 * ms))
			if script.IntN(3) > 0 {
				accepted := script.IntN(4) == 0
				x.complete(now, accepted)
				add(now, accepted)
				continue
			}
			p, want := twin.sum(now).probability(k), true
			switch s := floor(now); {
			case p == 0:
			case s > twin.last:
				twin.last = s
			case p == 1 || draws.Float64() < p:
				want = false
				add(now, false)
			}
			_, got := x.admit(now, k)
			require.Equal(t, want, got, "seed %d at %d", seed, now)
		}
	}
}

// An error whose methods panic is a failure like others, and keeps no retry. known bug 290
func TestErrorsThatPanic(t *testing.T) {
	g, err := engine.NewEngine(engine.Config{Chain: trial.Chain(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, g.Update(func(b *engine.SnapshotBuilder) error {
		return compile(b, []Rule{{ID: "r", Resource: get, Retries: Retries{Least: 1}}}, 1)
	}))
	for range 3 {
		e, err := g.Enter(t.Context(), get, []engine.Option{engine.Retry()})
		require.NoError(t, err)
		var none *net.OpError
		e.Fail(none)
		e.Exit()
	}
	assert.Positive(t, g.Failures())
}

// Explain judges the name that is asked for, also beyond the cap. known bug 291
func TestExplainBeyondTheCap(t *testing.T) {
	g := newGuardWith(t, engine.Config{Caps: node.Caps{Resources: 1}}, Rule{ID: "r", Resource: "*", Obey: true})
	require.True(t, g.call("first", nil))
	require.True(t, g.call("GET zz", engine.Overloaded(errFull, time.Minute)))
	for range 20 {
		for name, want := range map[string]core.Outcome{"GET zz": core.Refused, "POST qq": core.Passes, "first": core.Passes} {
			x, err := g.Explain(t.Context(), name, nil)
			require.NoError(t, err)
			require.Equal(t, want, x.Outcome, name)
			require.Equal(t, want == core.Passes, g.call(name, nil), name)
		}
	}
}
