package sentinel

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/system"
)

// A value without a meaning in Java becomes -1, which is rejected on reading.

func javaFlow(r flow.Rule) sentinel.JavaFlow {
	j := sentinel.JavaFlowUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, r.Origin, r.Match == spec.MatchRegex
	j.Grade, j.Count = slices.Index(sentinel.JavaMetrics, r.Metric), r.Threshold
	j.Strategy, j.RefResource = slices.Index(sentinel.JavaRelations, r.Relation), r.Ref
	if r.Metric == flow.Concurrency {
		return j
	}
	j.ControlBehavior = slices.Index(sentinel.JavaBehaviors, r.Behavior)
	if j.WarmsUp() {
		j.WarmUpPeriodSec = int(r.WarmUpPeriod / time.Second)
	}
	if j.Queues() {
		j.MaxQueueingTimeMs = int(r.MaxWait / time.Millisecond)
	}
	return j
}

func keepFlow(new, old flow.Rule) flow.Rule {
	new.ID = old.ID
	if new.Metric == old.Metric && new.Behavior == old.Behavior && old.Buckets > 0 {
		new.Window, new.Buckets = old.Window, old.Buckets
	}
	return new
}

// below returns the threshold of a Java breaker, which opens above its threshold, for a breaker that
// opens at threshold here. Of the two candidates that differ in the last bit, it returns the number
// with fewer digits, as people would write it.
func below(threshold float64) float64 {
	least := math.Nextafter(threshold, -1)
	if len(strconv.FormatFloat(least, 'g', -1, 64)) < len(strconv.FormatFloat(threshold, 'g', -1, 64)) {
		return least
	}
	return threshold
}

func javaBreaker(r breaker.Rule) sentinel.JavaBreaker {
	j := sentinel.JavaBreakerUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, sentinel.EveryCaller, r.Match == spec.MatchRegex
	j.Grade = slices.Index(sentinel.JavaStrategies, r.Strategy)
	j.TimeWindow = int(r.Recovery / time.Second)
	j.MinRequestAmount = r.MinCalls
	j.StatIntervalMs = int(r.Interval / time.Millisecond)
	switch r.Strategy {
	case breaker.SlowRatio:
		j.Count, j.SlowRatioThreshold = float64(r.SlowRT/time.Millisecond), below(r.Threshold)
	case breaker.ErrorRatio:
		j.Count = below(r.Threshold)
		if r.Threshold == 1 { // nothing is above it
			j.Count = math.Nextafter(1, 0)
		}
	case breaker.ErrorCount:
		j.Count = max(0, r.Threshold-1)
	}
	return j
}

func keepBreaker(new, old breaker.Rule) breaker.Rule {
	new.ID, new.Buckets, new.Probes, new.ProbeTimeout = old.ID, old.Buckets, old.Probes, old.ProbeTimeout
	switch {
	case new.Strategy != old.Strategy:
	case new.Strategy == breaker.ErrorCount && old.Threshold == 0 && new.Threshold == 1, // both open at the first error
		new.Strategy != breaker.ErrorCount && new.Threshold == math.Nextafter(old.Threshold, 2):
		new.Threshold = old.Threshold
	}
	return new
}

func javaHotspot(r hotspot.Rule) sentinel.JavaHotspot {
	j := sentinel.JavaHotspotUnset
	j.Resource, j.LimitApp, j.Regex = r.Resource, sentinel.EveryCaller, r.Match == spec.MatchRegex
	j.Grade, j.Count = slices.Index(sentinel.JavaHotspotMetrics, r.Metric), r.Threshold
	j.ParamIdx, _ = strconv.Atoi(r.Index.String())
	if r.Metric == hotspot.QPS {
		j.DurationInSec = int(r.Interval / time.Second)
		j.BurstCount = r.Burst
		if r.Behavior == hotspot.Throttle {
			j.ControlBehavior, j.MaxQueueingTimeMs = sentinel.JavaThrottle, int(r.MaxWait/time.Millisecond)
		}
	}
	for _, e := range r.Exceptions {
		value := e.Value.Scalar()
		j.ParamFlowItemList = append(j.ParamFlowItemList, sentinel.JavaItem{
			Object: sentinel.Text(javaText(value)), ClassType: javaType(value), Count: int(e.Threshold),
		})
	}
	return j
}

// javaText returns a value in the form of an item.
func javaText(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	var text sentinel.Text
	_ = text.SetScalar(value) // accepts everything
	return string(text)
}

// javaType returns the dashboard's name of a value's type.
func javaType(value any) string {
	switch v := value.(type) {
	case int64:
		if v == int64(int32(v)) {
			return "int"
		}
		return "long"
	case float64:
		return "double"
	case bool:
		return "boolean"
	}
	return "java.lang.String"
}

func keepHotspot(new, old hotspot.Rule) hotspot.Rule {
	new.ID, new.MaxValues, new.Missing = old.ID, old.MaxValues, old.Missing
	if new.Metric == old.Metric && new.Behavior == old.Behavior && new.Burst == 0 {
		new.Window = old.Window
	}
	return new
}

func javaSystem(r system.Rule) sentinel.JavaSystem {
	j := sentinel.JavaSystemUnset
	switch r.Metric {
	case system.QPS:
		j.QPS = r.Threshold
	case system.Concurrency:
		j.MaxThread = r.Threshold
	case system.RT:
		j.AvgRT = float64(r.MaxRT) / float64(time.Millisecond)
	case system.Load:
		j.HighestSystemLoad = r.Threshold
	case system.CPU:
		j.HighestCPUUsage = r.Threshold
	}
	return j
}

func keepSystem(new, old system.Rule) system.Rule {
	new.ID = old.ID
	if new.Metric == old.Metric {
		new.Buckets, new.Strict, new.Strategy = old.Buckets, old.Strict, old.Strategy
	}
	return new
}

func javaAuthority(r authority.Rule) sentinel.JavaAuthority {
	return sentinel.JavaAuthority{
		Resource: r.Resource, Regex: r.Match == spec.MatchRegex,
		LimitApp: strings.Join(r.Origins, ","), Strategy: slices.Index(sentinel.JavaLists, r.List),
	}
}

func keepAuthority(new, old authority.Rule) authority.Rule {
	new.ID = old.ID
	return new
}
