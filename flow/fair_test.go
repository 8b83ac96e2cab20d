package flow_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/trial"
)

// queueGuard records when calls run, by their text form. "a2" is a call of tenant a; "a2!" is of the
// level sheddable.
type queueGuard struct {
	*guard

	began int

	mu   sync.Mutex
	runs map[string]time.Duration
	errs map[string]error
	all  sync.WaitGroup
}

func newQueueGuard(t *testing.T, r flow.Rule) *queueGuard {
	t.Helper()
	g := &queueGuard{guard: newGuard(t, r), runs: make(map[string]time.Duration), errs: make(map[string]error)}
	g.clock.SetSleep(clocks.SleepPark)
	return g
}

// comes makes calls, one after the other. Each has run, was refused, or waits when the next comes.
func (g *queueGuard) comes(calls ...string) {
	g.t.Helper()
	for _, name := range calls {
		opts := []engine.Option{engine.Param("tenant", name[:1])}
		if name[len(name)-1] == '!' {
			opts = append(opts, engine.Criticality(core.Sheddable))
		}
		parked, lost, done := g.clock.Parked(), g.count(), make(chan struct{})
		g.began++
		g.all.Go(func() {
			defer close(done)
			e, err := g.Enter(g.t.Context(), "orders", opts)
			at := time.Duration(g.Now() - start.UnixNano())
			e.Exit()
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.errs[name] = err; err == nil {
				g.runs[name] = at
			}
		})
		require.Eventually(g.t, func() bool { // it has ended, or waits, perhaps in place of another
			select {
			case <-done:
				return true
			default:
				return g.clock.Parked()+g.count() == parked+lost+1
			}
		}, time.Minute, time.Microsecond)
	}
}

// count returns the number of calls that have ended.
func (g *queueGuard) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.errs)
}

// pass moves the clock on, from one wake-up to the next. The calls that run have ended by then.
func (g *queueGuard) pass(d time.Duration) {
	g.t.Helper()
	for end := g.Now() + int64(d); g.Now() < end; {
		g.clock.Advance(min(10*ms, time.Duration(end-g.Now())))
		require.Eventually(g.t, func() bool {
			parked := g.clock.Parked()
			return g.began-g.count() <= parked && int(g.Waiting()) == parked
		}, time.Minute, time.Microsecond)
	}
}

// ran returns the calls that have run, with the times in milliseconds.
func (g *queueGuard) ran() map[string]int64 {
	g.all.Wait()
	all := make(map[string]int64)
	for name, at := range g.runs {
		all[name] = at.Milliseconds()
	}
	return all
}

func sharedThrottle(maxWait time.Duration) flow.Rule {
	r := throttle(10, maxWait)
	r.ID, r.Share = "turns", spec.Share{By: "param tenant"}
	return r
}

// Tenants take turns, although one came first with all of its calls.
func TestTenantsTakeTurns(t *testing.T) {
	g := newQueueGuard(t, sharedThrottle(time.Second))
	g.comes("a1", "a2", "a3", "a4", "b1", "b2")
	stats, ok := trial.Figures(t, g.Engine, "turns").Details.(core.Shares)
	require.True(t, ok)
	assert.Equal(t, []string{"share a: rate 5, 3 queued, 1 served", "share b: rate 5, 2 queued, 0 served"}, stats.Lines(start))
	g.pass(time.Second)
	assert.Equal(t, map[string]int64{"a1": 0, "a2": 100, "b1": 200, "a3": 300, "b2": 400, "a4": 500}, g.ran())
}

// A tenant's calls fill MaxWait, then another's displace its newest; the refusal says so.
func TestTurnIsDisplaced(t *testing.T) {
	g := newQueueGuard(t, sharedThrottle(200*ms))
	g.comes("a1", "a2", "a3", "a4", "b1")
	g.pass(time.Second)
	assert.Equal(t, map[string]int64{"a1": 0, "a2": 100, "b1": 200}, g.ran())
	assert.EqualError(t, g.errs["a3"], `penstock: flow rule "turns" blocked "orders": the queue was full, and a call of another tenant, a higher level or a higher priority took its place`)
	require.ErrorIs(t, g.errs["a4"], core.ErrBlocked)
}

// A higher level comes first, and a call that would run after MaxWait is refused then.
func TestTurnsOfLevels(t *testing.T) {
	r := throttle(10, 200*ms)
	r.ID, r.Shed = "turns", spec.ShedLevels
	g := newQueueGuard(t, r)
	g.comes("a1!", "a2!", "a3!")
	g.pass(100 * ms)
	g.comes("b1")
	g.pass(time.Second)
	assert.Equal(t, map[string]int64{"a1!": 0, "a2!": 100, "b1": 200}, g.ran())
	block, ok := errors.AsType[*core.BlockError](g.errs["a3!"])
	require.True(t, ok)
	assert.Equal(t, "turns", block.Rule)
}

// until is a context whose deadline is on the clock of a test.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

// A call that can't wait as long as MaxWait waits as long as it can.
func TestTurnInAShareBeforeADeadline(t *testing.T) {
	g := newQueueGuard(t, sharedThrottle(time.Second))
	g.comes("a1", "a2")
	ctx := until{t.Context(), start.Add(250 * ms)}
	done := make(chan error, 2)
	for _, name := range []string{"b1", "b2"} {
		parked := g.clock.Parked()
		g.began++
		go func() {
			e, err := g.Enter(ctx, "orders", []engine.Option{engine.Param("tenant", "b")})
			e.Exit()
			g.mu.Lock()
			g.errs[name] = err
			g.mu.Unlock()
			done <- err
		}()
		g.clock.AwaitParked(parked + 1)
	}
	g.pass(time.Second)
	require.NoError(t, <-done)
	require.ErrorIs(t, <-done, core.ErrBlocked)
	assert.Equal(t, map[string]int64{"a1": 0, "a2": 100}, g.ran())
}

// Once the rule no longer shares, calls that wait keep their order, and later calls come after them;
// once it shares again, calls that wait come first. The rate holds all the time.
func TestSharesOfTurnsComeAndGo(t *testing.T) {
	r := sharedThrottle(time.Hour)
	g := newQueueGuard(t, r)
	g.comes("a1", "a2", "a3", "b1")
	r.Share = spec.Share{}
	g.load(r)
	g.comes("b2", "b3")
	r.Share = spec.Share{By: "origin"}
	g.load(r)
	g.comes("c1")
	g.pass(time.Second)
	assert.Equal(t, map[string]int64{"a1": 0, "a2": 100, "b1": 200, "a3": 300, "b2": 400, "b3": 500, "c1": 600}, g.ran())
}

// Explain names the place in the share, and the wait if nobody else comes.
func TestExplainTurnsOfShares(t *testing.T) {
	g := newQueueGuard(t, sharedThrottle(200*ms))
	explain := func(tenant string) core.ExplainedRule {
		x, err := g.Explain(t.Context(), "orders", []engine.Option{engine.Param("tenant", tenant)})
		require.NoError(t, err)
		return x.Rules[0]
	}
	assert.Equal(t, core.Passes, explain("a").Outcome)
	g.comes("a1", "a2")
	x := explain("a")
	assert.Equal(t, core.Waits, x.Outcome)
	assert.Equal(t, "2nd of 2 in its share", x.Why)
	assert.InDelta(t, 200, x.Measures[0].Measured, 0)
	g.comes("a3")
	assert.Equal(t, core.Refused, explain("a").Outcome)
	x = explain("b")
	assert.Equal(t, core.Waits, x.Outcome)
	assert.InDelta(t, 200, x.Measures[0].Measured, 0)
	g.pass(time.Second)
	g.ran()
}

// In shadow mode the rule counts the calls that it refuses when it is enforced, also calls that it
// lets wait first, and delays none.
func TestShadowOfTurnsOfShares(t *testing.T) {
	r := sharedThrottle(250 * ms)
	r.Shed = spec.ShedLevels
	rand := random(t)
	for range 20 {
		holds := newQueueGuard(t, r)
		shadow := r
		shadow.Mode = spec.Shadow
		watches := newQueueGuard(t, shadow)
		names := []string{"a", "b", "c", "a!", "b!"}
		for n := range 30 {
			name := names[rand.IntN(len(names))]
			name = name[:1] + string(rune('A'+n)) + name[1:]
			holds.comes(name)
			watches.comes(name)
			d := time.Duration(rand.IntN(3)) * 50 * ms
			holds.pass(d)
			watches.pass(d)
		}
		holds.pass(time.Minute)
		watches.pass(time.Minute)
		watches.comes("d1") // at which the last ones are noticed
		holds.comes("d1")
		ran := holds.ran()
		assert.Len(t, watches.ran(), 31, "none is refused")
		assert.EqualValues(t, 31-len(ran), watches.shadowBlocked("turns"))
		times := make([]int64, 0, len(ran))
		for _, at := range ran {
			times = append(times, at)
		}
		slices.Sort(times)
		for i := range times[1:] {
			assert.GreaterOrEqual(t, times[i+1]-times[i], int64(100))
		}
	}
}

// A turn that was lost in a share serves later calls in a queue without shares.
func TestALostTurnIsReused(t *testing.T) {
	fair, plain := sharedThrottle(200*ms), throttle(10, time.Second)
	plain.ID, plain.Resource = "plain", "plain"
	g := newQueueGuard(t, fair)
	g.load(fair, plain)
	for range 5 {
		g.comes("a1", "a2", "a3", "a4", "b1", "b2")
		g.pass(time.Second)
		g.all.Wait()
		clear(g.errs)
		g.began = 0
		done := make(chan error, 6)
		for i := range 6 {
			parked := g.clock.Parked()
			go func() {
				e, err := g.Enter(t.Context(), "plain", nil)
				e.Exit()
				done <- err
			}()
			if i > 0 {
				g.clock.AwaitParked(parked + 1)
			} else {
				require.NoError(t, <-done)
			}
		}
		g.pass(2 * time.Second)
		for range 5 {
			require.NoError(t, <-done)
		}
	}
}

// A call that also waits for another queue wakes for its turn in the share, and wakes the next one.
func TestATurnInAShareOfACallThatLingers(t *testing.T) {
	fair, slow := sharedThrottle(5*time.Second), throttle(0.5, 5*time.Second)
	slow.ID, slow.Origin = "slow", "slow"
	g := newQueueGuard(t, fair)
	g.load(fair, slow)
	at := make(map[string]time.Duration)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, name := range []string{"a slow", "b slow", "c fast"} {
		parked, done := g.clock.Parked(), make(chan struct{})
		all.Go(func() {
			defer close(done)
			e, err := g.Enter(engine.WithOrigin(t.Context(), name[2:]), "orders", []engine.Option{engine.Param("tenant", name[:1])})
			assert.NoError(t, err)
			e.Exit()
			mu.Lock()
			at[name] = time.Duration(g.Now() - start.UnixNano())
			mu.Unlock()
		})
		if i > 0 {
			g.clock.AwaitParked(parked + 1)
		} else {
			<-done
		}
	}
	for _, waits := range []int{1, 0} { // each step of the clock ends once the calls that it woke have looked
		for int(g.Waiting()) > waits {
			g.clock.Advance(50 * ms)
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(at)+g.clock.Parked() == 3 && g.clock.Parked() == int(g.Waiting())
			}, time.Minute, time.Microsecond)
		}
	}
	all.Wait()
	assert.Equal(t, map[string]time.Duration{"a slow": 0, "b slow": 2 * time.Second, "c fast": 200 * ms}, at)
}

// The turns of a rule in shadow mode delay nobody once it is enforced, and its stats follow the clock.
func TestShadowTurnsStayInShadow(t *testing.T) {
	r := sharedThrottle(time.Second)
	r.Mode = spec.Shadow
	g := newQueueGuard(t, r)
	g.comes("a1", "a2", "a3", "b1")
	g.pass(150 * ms)
	lines := func() []string {
		stats, ok := trial.Figures(t, g.Engine, "turns").Details.(core.Shares)
		require.True(t, ok)
		return stats.Lines(start)
	}
	assert.Equal(t, []string{"share a: rate 5, 1 queued, 2 served", "share b: rate 5, 1 queued, 0 served"}, lines())
	g.pass(time.Minute)
	assert.Equal(t, []string{"share a: holds 0, 0 queued, 3 served", "share b: holds 0, 0 queued, 1 served"}, lines())
	g.comes("a4", "a5")
	g.load(flow.Rule{ID: "turns", Resource: "orders", Threshold: 1000})
	r.Mode = spec.Enforce
	g.load(r)
	g.comes("c1", "c2")
	g.pass(time.Second)
	ran := g.ran()
	assert.Equal(t, ran["c1"]+100, ran["c2"])
}
