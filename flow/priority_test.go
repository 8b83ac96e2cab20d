package flow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

// order records the order in which queued calls run, with times in milliseconds.
type order struct {
	*guard
	began int64
	ran   chan string
	calls int
}

// newOrder starts with a call that has just run.
func newOrder(t *testing.T, rules ...flow.Rule) *order {
	t.Helper()
	o := &order{guard: newGuard(t, rules...), ran: make(chan string, 100)}
	o.clock.SetSleep(clocks.SleepPark)
	o.began = o.clock.Now()
	require.Equal(t, "pass", o.outcome("orders"))
	return o
}

// waits makes a call that must wait.
func (o *order) waits(ctx context.Context, name string, opts ...engine.Option) {
	o.t.Helper()
	before := int(o.Waiting())
	o.calls++
	go func() {
		e, err := o.Enter(ctx, "orders", opts)
		e.Exit()
		at := time.Duration(o.clock.Now() - o.began).Milliseconds()
		if err != nil {
			o.ran <- fmt.Sprint(name, " refused")
			return
		}
		o.ran <- fmt.Sprint(name, " ", at)
	}()
	o.clock.AwaitParked(before + 1)
}

// refuses makes a call that must be refused, and returns its RetryAfter.
func (o *order) refuses(opts ...engine.Option) time.Duration {
	o.t.Helper()
	_, err := o.Enter(o.t.Context(), "orders", opts)
	b, ok := errors.AsType[*core.BlockError](err)
	require.True(o.t, ok, "%v", err)
	return comeAgain(o.t, b)
}

// all runs every call, in steps of time: before the next step, calls that wake and go back to sleep
// must be sleeping again, and calls that run must have reported it.
func (o *order) all() (ran []string) {
	for len(ran) < o.calls {
		o.clock.Advance(ms)
		for o.clock.Parked()+len(o.ran)+len(ran) < o.calls {
			runtime.Gosched()
		}
		for len(o.ran) > 0 {
			ran = append(ran, <-o.ran)
		}
	}
	assert.Zero(o.t, o.Waiting())
	return ran
}

// Prioritized calls jump ahead of waiting calls, at most every second one; later arrivals change
// nothing for them, and a call pushed back wakes at its original time and goes back to sleep.
// known bug 139, 140
func TestPrioritizedCallsOvertake(t *testing.T) {
	first := engine.Prioritized()
	for name, ctx := range map[string]context.Context{
		"callers who may leave": t.Context(),
		"callers who stay":      context.Background(),
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrder(t, throttle(50, 500*ms))
			o.waits(ctx, "vip 1", first)
			for _, n := range []string{"a", "b", "c"} {
				o.waits(ctx, n)
			}
			o.waits(ctx, "vip 2", first)
			o.waits(ctx, "vip 3", first)
			o.waits(ctx, "d")
			assert.Equal(t, []string{"vip 1 20", "vip 2 40", "a 60", "vip 3 80", "b 100", "c 120", "d 140"}, o.all())
		})
	}
}

// In a full queue a prioritized call still gets a turn, and pushes the others beyond maxWait, to at
// most twice their original wait. Calls that arrive then are refused, with a RetryAfter after which
// one would be admitted.
// known bug 139
func TestFullQueueIsOvertaken(t *testing.T) {
	o := newOrder(t, throttle(10, 200*ms))
	o.waits(t.Context(), "a")
	o.waits(t.Context(), "b")
	assert.Equal(t, 100*ms, o.refuses())
	o.waits(t.Context(), "vip 1", engine.Prioritized())
	assert.Equal(t, 200*ms, o.refuses())
	assert.Equal(t, 200*ms, o.refuses(engine.Prioritized()), "its turn would be the one after a's")
	o.clock.Advance(100 * ms)
	o.waits(t.Context(), "vip 2", engine.Prioritized())
	assert.Equal(t, 200*ms, o.refuses())
	assert.Equal(t, 200*ms, o.refuses(engine.Prioritized()), "b has been pushed back often enough")
	assert.Equal(t, []string{"vip 1 100", "a 200", "vip 2 300", "b 400"}, o.all())
}

// A call in two queues is pushed back in each by the calls that jump ahead of it there, and runs at
// the later of its two turns.
func TestOvertakenInSeveralQueues(t *testing.T) {
	quick := throttle(10, time.Hour)
	slow := flow.Rule{ID: "slow", Resource: "orders", Threshold: 4, Behavior: flow.Throttle, MaxWait: time.Hour}
	app := flow.Rule{ID: "app", Resource: "orders", Origin: "app", Threshold: 5, Behavior: flow.Throttle, MaxWait: time.Hour}
	for _, tt := range []struct {
		name  string
		rules []flow.Rule
		from  string // where the other calls come from
		want  []string
	}{
		{"both pushed back", []flow.Rule{quick, slow}, "app", []string{"vip 1 250", "a 500", "vip 2 750", "b 1000"}},
		{"both pushed back, the slower one first", []flow.Rule{slow, quick}, "app", []string{"vip 1 250", "a 500", "vip 2 750", "b 1000"}},
		// At 5 per second the turns are at 0, which the first call gets at once, and 200; at 10 per
		// second they are at 100 and 200, and then at 200 and 400.
		{"only where they are together", []flow.Rule{app, quick}, "app", []string{"vip 1 100", "a 200", "vip 2 300", "b 400"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOrder(t, tt.rules...)
			ctx := engine.WithOrigin(t.Context(), tt.from)
			o.waits(ctx, "a")
			o.waits(ctx, "b")
			o.waits(t.Context(), "vip 1", engine.Prioritized())
			o.waits(t.Context(), "vip 2", engine.Prioritized())
			assert.Equal(t, tt.want, o.all())
		})
	}
}

// A prioritized call that gives up returns the time to the calls that it pushed back.
func TestPrioritizedCallLeaves(t *testing.T) {
	o := newOrder(t, throttle(10, time.Second))
	for _, n := range []string{"a", "b", "c"} {
		o.waits(t.Context(), n)
	}
	ctx, leave := context.WithCancel(t.Context())
	o.waits(ctx, "vip 1", engine.Prioritized())
	o.clock.Advance(50 * ms)
	leave()
	assert.Equal(t, "vip 1 refused", <-o.ran)
	o.calls--
	o.waits(t.Context(), "vip 2", engine.Prioritized())
	assert.Equal(t, []string{"vip 2 100", "a 200", "b 300", "c 400"}, o.all())
}
