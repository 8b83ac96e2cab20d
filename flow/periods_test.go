package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// periods are intervals other than a second, so that a wrong unit shows.
var periods = []time.Duration{10 * ms, 250 * ms, time.Second, 7 * time.Second, time.Minute, 24 * time.Hour}

// Callers ask for more than they get, at every step of the clock: a rule grants its threshold in
// each interval of any length, and never books more than the threshold ahead.
// known bug 12, 15
func TestThresholdIsPerInterval(t *testing.T) {
	const threshold, intervals = 5, 40
	for _, interval := range periods {
		for _, r := range []flow.Rule{
			{Behavior: flow.Reject, Buckets: 1, Window: flow.Ring},
			{Behavior: flow.Reject, Buckets: 5, Window: flow.Ring},
			{Behavior: flow.Throttle, MaxWait: min(3*interval, flow.MaxWaitLimit)},
			{Behavior: flow.Throttle, MaxWait: 1},
		} {
			r.ID, r.Resource, r.Threshold, r.Interval = "r", "orders", threshold, interval
			t.Run(fmt.Sprintf("%v %v/%d, at most %v", r.Behavior, interval, r.Buckets, r.MaxWait), func(t *testing.T) {
				g := newGuard(t, r)
				var runs []time.Duration // when the admitted calls run
				slack := 0               // units in the queue at the end, beyond the time
				for now := time.Duration(0); now < intervals*interval; now += interval / 20 {
					g.at(now)
					for range 2 {
						waits := len(g.clock.Slept())
						entry, err := g.Enter(t.Context(), "orders", nil)
						entry.Exit()
						if err != nil {
							continue
						}
						at := now
						if slept := g.clock.Slept(); len(slept) > waits {
							at += slept[waits]
						}
						runs = append(runs, at)
						if at > now {
							slack = int((at - now) * threshold / interval)
						}
					}
				}
				for i, first := 0, 0; i < len(runs); i++ {
					for runs[i]-runs[first] >= interval {
						first++
					}
					assert.LessOrEqual(t, i-first+1, 2*threshold, "in the interval up to %v", runs[i])
				}
				assert.InDelta(t, threshold*intervals, len(runs)-slack, threshold, "admitted in %d intervals", intervals)
				if r.Behavior == flow.Throttle {
					for i := 1; i < len(runs); i++ {
						assert.GreaterOrEqual(t, runs[i]-runs[i-1]+1, interval/threshold, "two that run after each other")
					}
				}
			})
		}
	}
}
