package lint

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// flows checks each flow rule by itself.
func (l *linter) flows() {
	const family = "flow"
	access := l.list("authority")
	for i, r := range l.set.Flow {
		if r.Mode == spec.Off {
			continue
		}
		switch whole := math.Floor(r.Threshold); {
		case !counted(r) || whole == r.Threshold:
		case whole == 0:
			l.add("PN009", Warning, family, i, "threshold", "a threshold of %v admits nothing: only whole units count; to admit one call in a longer time make interval longer, or throttle", r.Threshold)
		default:
			l.add("PN016", Notice, family, i, "threshold", "a threshold of %v admits %v: only whole units count; the fraction counts with behavior throttle or tokenBucket", r.Threshold, whole)
		}
		l.warmUp(i, r)
		l.waits(family, i, r.Threshold > 0 && (r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle), r.MaxWait, distance(r.Interval, r.Threshold))
		if counted(r) && r.Metric == flow.QPS && r.Per == spec.PerNone && r.Window == flow.Strict {
			l.coarse(family, i, r.Buckets)
		}
		if r.Behavior == flow.TokenBucket && r.Burst == 0 && r.Threshold > r.Interval.Seconds() {
			l.add("PN021", Notice, family, i, "behavior", "without a burst the bucket holds one token: calls pass one by one, at least %v apart, and a call that is slightly early is refused; add burst", distance(r.Interval, r.Threshold))
		}
		if r.MemoryThreshold != 0 && r.HighMemory == flow.Share(1) {
			l.add("PN017", Notice, family, i, "highMemory", "a share of 1 is all of the memory: a process is killed before it gets there, so memoryThreshold never holds; use 0.9, say")
		}
		l.refers(i, r)
		if named := r.Origin != flow.OriginDefault && r.Origin != flow.OriginOther; named && r.Info().Named() {
			for _, j := range access.about(r.Resource) {
				if a := l.set.Authority[j]; slices.Contains(a.Origins, r.Origin) == (a.List == authority.Deny) {
					l.add("PN018", Warning, family, i, "origin", "no call of %q gets here: %s refuses that caller", r.Origin, l.at("authority", j))
					break
				}
			}
		}
	}
}

// distance returns the time between two units of a throttle.
func distance(interval time.Duration, threshold float64) time.Duration {
	return time.Duration(min(float64(interval)/threshold, float64(math.MaxInt64/2)))
}

// warmUp checks whether the warm-up has any effect.
func (l *linter) warmUp(i int, r flow.Rule) {
	if r.Behavior != flow.WarmUp && r.Behavior != flow.WarmUpThrottle || r.Threshold == 0 {
		return
	}
	perSecond := r.Threshold / r.Interval.Seconds()
	tokens := 2 * r.WarmUpPeriod.Seconds() * perSecond / float64(1+r.ColdFactor) // between cold and warm
	switch {
	case r.Behavior == flow.WarmUp && r.Threshold < 2:
		l.add("PN008", Warning, "flow", i, "threshold", "a threshold of %v admits one call per interval, cold or warm: the warm-up has no effect", r.Threshold)
	case tokens < 1:
		l.add("PN008", Warning, "flow", i, "warmUpPeriod", "at %v calls per second, a warm-up of %v ends with the first call: make warmUpPeriod longer, or leave out the warm-up", float32(perSecond), r.WarmUpPeriod)
	case r.Behavior == flow.WarmUp && r.WarmUpPeriod < r.Interval:
		l.add("PN008", Warning, "flow", i, "warmUpPeriod", "the limit reaches the threshold after %v, before the first interval of %v ends: make warmUpPeriod longer, or interval shorter", r.WarmUpPeriod, r.Interval)
	}
}

// waits checks a queue whose calls pass at a distance.
func (l *linter) waits(family string, i int, queues bool, maxWait, distance time.Duration) {
	switch timeout := l.opts.CallerTimeout; {
	case !queues || maxWait <= 1: // the way to say that no call should wait
	case maxWait < distance:
		l.add("PN011", Warning, family, i, "maxWait", "no call ever waits: the next turn is %v away, and maxWait is %v; make maxWait longer, or reject", distance, maxWait)
	case timeout > 0 && maxWait > timeout:
		l.add("PN006", Warning, family, i, "maxWait", "calls wait for up to %v, but their callers give up after %v: make maxWait shorter", maxWait, timeout)
	}
}

// coarse checks a strict window.
func (l *linter) coarse(family string, i, buckets int) {
	const fewest = 5
	if buckets < fewest {
		l.add("PN015", Notice, family, i, "buckets", "a strict window of %d buckets admits %d/%d of the threshold under steady load: remove buckets, or write strict: false for Sentinel's window", buckets, buckets, buckets+1)
	}
}

// refers checks the references of a rule.
func (l *linter) refers(i int, r flow.Rule) {
	seen := l.opts.Seen
	switch {
	case r.Relation == flow.Associated && r.Info().Named() && r.Ref == r.Resource:
		l.add("PN003", Warning, "flow", i, "ref", "the rule reads its own resource and takes nothing there, so simultaneous calls all pass: remove relation and ref")
	case seen == nil:
	case r.Relation == flow.Associated && !slices.Contains(seen.Resources, r.Ref):
		l.add("PN003", Warning, "flow", i, "ref", "no call has asked for %q, and until one does the rule limits nothing: is the name right?", r.Ref)
	case r.Relation == flow.Chain && !slices.Contains(seen.Contexts, r.Ref):
		l.add("PN003", Warning, "flow", i, "ref", "no call has come in through a context %q, the only one that the rule applies to: ref must be a name passed to api.WithContext, not a resource", r.Ref)
	}
}

// shadowed finds rules that never take effect because another one is at least as strict for all their
// calls.
func (l *linter) shadowed() {
	shadowed(l, "flow", l.set.Flow, stricterFlow)
	shadowed(l, "hotspot", l.set.Hotspot, stricterHotspot)
	shadowed(l, "isolation", l.set.Isolation, stricterIsolation)
	for i := range l.set.System {
		if j := stricterSystem(l.set.System, i); j >= 0 {
			l.tellShadowed("system", i, j)
		}
	}
}

func shadowed[R spec.Rule](l *linter, family string, rules []R, stricter func(strict, loose R) bool) {
	for _, group := range groups(l.list(family).infos) {
		group = slices.DeleteFunc(group, func(i int) bool { return rules[i].Info().Mode != spec.Enforce || shared(rules[i]) })
		for _, i := range group {
			j := slices.IndexFunc(group, func(j int) bool {
				// Of two equally strict rules, the later one is redundant.
				return i != j && stricter(rules[j], rules[i]) && (j < i || !stricter(rules[i], rules[j]))
			})
			if j >= 0 && !spec.Equal(spec.WithID(rules[i], ""), spec.WithID(rules[group[j]], "")) { // another check reports that
				l.tellShadowed(family, i, group[j])
			}
		}
	}
}

// shared reports whether a cluster shares the limit of a rule: a local rule doesn't know the calls
// of other members, and vice versa.
func shared(rule any) bool {
	r, ok := rule.(interface{ Shared() bool })
	return ok && r.Shared()
}

func (l *linter) tellShadowed(family string, i, j int) {
	l.add("PN002", Warning, family, i, "threshold", "the rule never decides: %s never admits more; remove or correct one of them", l.at(family, j))
}

// stricterFlow reports whether loose admits every call that strict admits.
func stricterFlow(strict, loose flow.Rule) bool {
	switch {
	case !everybody(strict) || loose.Unit != "" || loose.Relation == flow.Associated || loose.MemoryThreshold != 0:
		return false
	case loose.Metric == flow.Concurrency:
		return strict.Metric == flow.Concurrency && math.Floor(strict.Threshold) <= math.Floor(loose.Threshold)
	case loose.Behavior != flow.Reject || strict.Metric != flow.QPS:
		return false
	}
	if loose.Per != spec.PerNone {
		return strict.Per == loose.Per && strict.Timezone == loose.Timezone && strict.Starts == loose.Starts && math.Floor(strict.Threshold) <= math.Floor(loose.Threshold)
	}
	same := strict.Per == loose.Per && strict.Interval == loose.Interval && strict.Buckets == loose.Buckets && strict.Window == loose.Window
	if counted(strict) && same {
		return math.Floor(strict.Threshold) <= math.Floor(loose.Threshold)
	}
	over := loose.Interval
	if loose.Window == flow.Strict { // it looks back one more bucket
		over += loose.Interval / time.Duration(loose.Buckets)
	}
	if strict.Behavior == flow.Throttle || strict.Behavior == flow.WarmUpThrottle {
		return false // a call of any number of units passes while it is idle
	}
	return most(strict, over) <= math.Floor(loose.Threshold)
}
