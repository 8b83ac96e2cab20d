package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// parkedCall is a waiting call.
type parkedCall struct {
	leave context.CancelFunc
	done  chan error
}

func (g *guard) parks(t *testing.T) parkedCall {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := parkedCall{cancel, make(chan error, 1)}
	before := int(g.Waiting())
	go func() {
		e, err := g.Enter(ctx, "orders", nil)
		e.Exit()
		c.done <- err
	}()
	g.clock.AwaitParked(before + 1)
	return c
}

// A call that waits in two queues leaves both when it gives up, and later calls advance in both:
// they run at the later of their two new turns. A queue in shadow mode delays no call, but a call
// leaves it all the same.
func TestLeavingSeveralQueues(t *testing.T) {
	slow := flow.Rule{ID: "s", Resource: "orders", Threshold: 4, Behavior: flow.Throttle, MaxWait: time.Second}
	shadow := slow
	shadow.Mode, shadow.MaxWait = spec.Shadow, 500*ms
	for _, tt := range []struct {
		name  string
		rules []flow.Rule
		turn  time.Duration // between two calls that run
	}{
		{"the slower one last", []flow.Rule{throttle(10, time.Hour), slow}, 250 * ms},
		{"the slower one first", []flow.Rule{slow, throttle(10, time.Hour)}, 250 * ms},
		{"the slower one in shadow mode", []flow.Rule{shadow, throttle(10, time.Hour)}, 100 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(t, tt.rules...)
			g.clock.SetSleep(clocks.SleepPark)
			assert.Equal(t, "pass", g.outcome("orders"))
			first, second, third := g.parks(t), g.parks(t), g.parks(t)
			first.leave()
			require.ErrorIs(t, <-first.done, context.Canceled)
			for i, c := range []parkedCall{second, third} {
				g.clock.Advance(tt.turn - 1)
				assert.EqualValues(t, 2-i, g.Waiting(), "too early")
				g.clock.Advance(1)
				require.EqualValues(t, 1-i, g.Waiting(), "too late")
				require.NoError(t, <-c.done)
				c.leave()
			}
			g.clock.SetSleep(clocks.SleepRecord)
			assert.Equal(t, tt.turn.String(), g.outcome("orders"))
			if tt.rules[0].Mode == spec.Shadow {
				assert.EqualValues(t, 1, g.shadowBlocked("s"), "the third; not the last, for which the first has made room")
			}
		})
	}
}
