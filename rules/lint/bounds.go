package lint

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/calendar"
)

// most returns the maximum number of units that a flow rule admits within any interval of length d
// under any traffic, or infinity; for a throttle, the maximum number of calls.
func most(r flow.Rule, d time.Duration) float64 {
	perInterval := math.Floor(r.Threshold)
	intervals := math.Ceil(float64(d) / float64(r.Interval))
	rate := r.Threshold * float64(d) / float64(r.Interval)
	switch {
	case r.Metric != flow.QPS:
		return math.Inf(1)
	case r.Per != spec.PerNone:
		return (math.Ceil(float64(d)/float64(calendar.Shortest(r.Per))) + 1) * perInterval // it may begin and end within a period
	case r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle:
		return math.Floor(rate + r.MaxWait.Seconds()*r.Threshold/r.Interval.Seconds() + float64(r.Burst) + 1) // it admits them as they arrive, to wait
	case r.Behavior == flow.TokenBucket:
		return math.Floor(rate + float64(r.Burst) + 1)
	case r.Window == flow.Ring:
		return 2 * intervals * perInterval // twice the limit in any of its intervals
	}
	return intervals * perInterval
}

// everybody reports whether a flow rule counts all calls of its resource.
func everybody(r flow.Rule) bool {
	return r.Relation == flow.Direct && r.Origin == flow.OriginDefault && r.Unit == "" && !r.Shared()
}

// counted reports whether a flow rule counts whole units, so that a fraction is lost.
func counted(r flow.Rule) bool { return r.Behavior == flow.Reject || r.Behavior == flow.WarmUp }
