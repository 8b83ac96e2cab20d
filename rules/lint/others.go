package lint

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// hotspots checks each hotspot rule by itself.
func (l *linter) hotspots() {
	const family = "hotspot"
	for i, r := range l.set.Hotspot {
		if r.Mode == spec.Off {
			continue
		}
		counts := r.Behavior == hotspot.Reject
		switch whole := math.Floor(r.Threshold); {
		case !counts || whole == r.Threshold:
		case whole == 0:
			l.add("PN009", Warning, family, i, "threshold", "a threshold of %v admits nothing for any value: only whole units count; to admit one call in a longer time make interval longer, or use tokenBucket", r.Threshold)
		default:
			l.add("PN016", Notice, family, i, "threshold", "a threshold of %v admits %v: only whole units count; the fraction counts with behavior throttle or tokenBucket", r.Threshold, whole)
		}
		for _, x := range r.Exceptions {
			switch {
			case x.Threshold == r.Threshold && !slices.ContainsFunc(r.Exceptions, starred): // or it may be one from an exception with stars
				l.add("PN020", Notice, family, i, "exceptions", "the exception for %v has the rule's own threshold: remove it, or give it another", excepted(x))
			case counts && x.Threshold > 0 && x.Threshold < 1:
				l.add("PN009", Warning, family, i, "exceptions", "the threshold of %v for %v admits nothing: only whole units count", x.Threshold, excepted(x))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Plans)) {
			if limit := r.Plans[name]; counts && limit > 0 && limit < 1 {
				l.add("PN009", Warning, family, i, "plans", "the threshold of %v for %s admits nothing: only whole units count", limit, shown.Label(name))
			}
		}
		l.waits(family, i, r.Threshold > 0 && r.Behavior == hotspot.Throttle, r.MaxWait, distance(r.Interval, r.Threshold))
		if r.Behavior == hotspot.TokenBucket && r.Burst == 0 && r.Threshold > r.Interval.Seconds() {
			l.add("PN021", Notice, family, i, "behavior", "without a burst the bucket of a value holds one token: its calls pass one by one, at least %v apart, and a call that is slightly early is refused; add burst", distance(r.Interval, r.Threshold))
		}
		if r.Match == spec.MatchExact && r.Resource != spec.AnyResource && slices.Contains(r.Keys, "resource") {
			l.add("PN030", Notice, family, i, "keys", "the rule is for one resource, so the part resource of its keys is always %q: remove it, or set match for a rule of several resources", r.Resource)
		}
		if n := l.unknownPlans(r); n > 0 {
			l.add("PN031", Warning, family, i, "plans", "%d calls named a plan that isn't listed, and had the rule's threshold of %v: list the plan, or correct its name", n, r.Threshold)
		}
		if s := l.limitsFromCode(r); s.Answers == 0 && s.Errors > 0 {
			l.add("PN032", Warning, family, i, "limitsFromCode", "no question about a limit was answered, so plans and the threshold of %v hold: %s", r.Threshold, s.LastError)
		}
		if n := l.overflowed(r); n > 0 && r.Per != spec.PerNone {
			l.add("PN033", Warning, family, i, "maxValues", "%d calls found no place for their value, and shared one quota: a value keeps its place until its period ends, so make maxValues, %d, larger than the number of values in a %v", n, r.MaxValues, r.Per)
		}
		if l.opts.Seen != nil && slices.ContainsFunc(l.opts.Seen.Rules, withoutValue(r)) {
			l.add("PN004", Warning, family, i, argument(r), "calls don't pass the argument that the rule limits, so %s: pass it with api.Param or api.Args", map[hotspot.Missing]string{
				hotspot.MissingNone: "it limits nothing", hotspot.MissingUnlimited: "it limits nothing",
				hotspot.MissingShared: "all share one limit", hotspot.MissingRefuse: "it refuses all",
			}[r.Missing])
		}
	}
}

// starred reports whether an exception is for more than one key.
func starred(x hotspot.Exception) bool { return slices.Contains(x.Values, hotspot.ValueOf("*")) }

// excepted returns the value of an exception, or its parts.
func excepted(x hotspot.Exception) any {
	if len(x.Values) == 0 {
		return x.Value
	}
	return x.Values
}

// unknownPlans returns the number of calls with a plan that the rule doesn't list.
func (l *linter) unknownPlans(of hotspot.Rule) int64 {
	return l.seen(of, func(f hotspot.Stats) int64 { return f.UnknownPlans })
}

// overflowed returns the number of calls whose value shared a limit with others.
func (l *linter) overflowed(of hotspot.Rule) int64 {
	return l.seen(of, func(f hotspot.Stats) int64 { return f.Overflowed })
}

// seen returns a count of a rule's stats, or 0 if there are none.
func (l *linter) seen(of hotspot.Rule, count func(hotspot.Stats) int64) (n int64) {
	if l.opts.Seen == nil {
		return 0
	}
	for _, r := range l.opts.Seen.Rules {
		if f, ok := r.Details.(hotspot.Stats); ok && r.ID == of.ID {
			n += count(f)
		}
	}
	return n
}

// limitsFromCode returns the counts of the questions about limits.
func (l *linter) limitsFromCode(of hotspot.Rule) (sum hotspot.LimitStats) {
	if l.opts.Seen == nil {
		return sum
	}
	for _, r := range l.opts.Seen.Rules {
		if f, ok := r.Details.(hotspot.Stats); ok && r.ID == of.ID && f.LimitsFromCode != nil {
			sum = *f.LimitsFromCode
		}
	}
	return sum
}

// withoutValue returns a function that reports whether stats belong to a rule that could have applied
// to some calls, none of them with a value.
func withoutValue(of hotspot.Rule) func(core.RuleStats) bool {
	none := func(v hotspot.ValueStats) bool {
		// As a whole, or as a part: quotes within a value are shown escaped.
		return of.Missing != hotspot.MissingNone && strings.Contains(", "+v.Value+",", `, "",`)
	}
	return func(r core.RuleStats) bool {
		if r.Kind != core.KindHotspot || r.ID != of.ID || !r.Asked {
			return false
		}
		f, ok := r.Details.(hotspot.Stats)
		return ok && f.Overflowed == 0 && !slices.ContainsFunc(f.Top, func(v hotspot.ValueStats) bool { return !none(v) })
	}
}

// argument returns the field that selects the values of a rule.
func argument(r hotspot.Rule) string {
	switch {
	case len(r.Keys) > 0:
		return "keys"
	case r.Param != "":
		return "param"
	}
	return "index"
}

// stricterHotspot reports whether loose admits every call that strict admits. It is only known for
// rules that count calls.
func stricterHotspot(strict, loose hotspot.Rule) bool {
	return strict.Unit == "" && loose.Unit == "" && strict.Index == loose.Index && strict.Param == loose.Param && slices.Equal(strict.Keys, loose.Keys) && strict.Metric == loose.Metric &&
		strict.Behavior == hotspot.Reject && loose.Behavior == hotspot.Reject && strict.Interval == loose.Interval &&
		strict.Per == loose.Per && strict.Timezone == loose.Timezone && strict.Starts == loose.Starts &&
		len(strict.Exceptions) == 0 && len(loose.Exceptions) == 0 && stricterMissing(strict.Missing, loose.Missing) && strict.MaxValues == loose.MaxValues &&
		enoughFor(strict, loose)
}

// stricterMissing reports the same for calls without a value, given that it holds for calls with a
// value.
func stricterMissing(strict, loose hotspot.Missing) bool {
	return strict == loose || strict == hotspot.MissingRefuse || loose == hotspot.MissingUnlimited ||
		strict == hotspot.MissingShared && loose == hotspot.MissingNone
}

// enoughFor reports whether a value's bucket of loose is never empty if strict's decides first. A
// strict window admits at most its threshold in any interval. Each bucket is refilled at the end of
// its own interval: a value can use up two of strict's within one of loose's, and three within a
// window, which looks back for an interval and a tenth.
func enoughFor(strict, loose hotspot.Rule) bool {
	if loose.Metric == hotspot.Concurrency {
		return math.Floor(strict.Threshold) <= math.Floor(loose.Threshold)
	}
	fillings := 2.0
	switch {
	case strict.Window == hotspot.Strict:
		fillings = 1
	case loose.Window == hotspot.Strict:
		fillings = 3
	}
	return fillings*(math.Floor(strict.Threshold)+float64(strict.Burst)) <= math.Floor(loose.Threshold)
}

// systems checks the system rules.
func (l *linter) systems() {
	const family = "system"
	for i, r := range l.set.System {
		if r.Mode == spec.Off {
			continue
		}
		if l.opts.Seen != nil && !l.opts.Seen.Inbound {
			l.add("PN005", Warning, family, i, "", "no call is inbound, and system rules apply only to inbound calls: mark calls from outside with api.Inbound()")
		}
		if r.Metric != system.QPS && r.Metric != system.Concurrency {
			continue
		}
		switch whole := math.Floor(r.Threshold); {
		case whole == r.Threshold:
		case whole == 0:
			l.add("PN009", Warning, family, i, "threshold", "a threshold of %v admits nothing: only whole units count", r.Threshold)
		default:
			l.add("PN016", Notice, family, i, "threshold", "a threshold of %v admits %v: only whole units count", r.Threshold, whole)
		}
		if r.Strict {
			l.coarse(family, i, r.Buckets)
		}
	}
}

// stricterSystem returns a rule that keeps rule i from ever taking effect, or -1.
func stricterSystem(rules []system.Rule, i int) int {
	loose := rules[i]
	if len(rules) > maxAlike || loose.Mode != spec.Enforce || loose.Shed != spec.ShedNone { // it leaves units free
		return -1
	}
	return slices.IndexFunc(rules, func(strict system.Rule) bool {
		if strict == loose || strict.Mode != spec.Enforce || strict.Metric != loose.Metric || strict.Interval != loose.Interval ||
			strict.Buckets != loose.Buckets || strict.Strict != loose.Strict {
			return false
		}
		switch loose.Metric {
		case system.QPS, system.Concurrency:
			return math.Floor(strict.Threshold) < math.Floor(loose.Threshold)
		case system.RT:
			return strict.MaxRT < loose.MaxRT
		}
		return false
	})
}

// isolations checks each isolation rule by itself.
func (l *linter) isolations() {
	const family = "isolation"
	flows := l.list("flow")
	for i, r := range l.set.Isolation {
		if r.Mode == spec.Off || r.MaxQueue == 0 {
			continue
		}
		if timeout := l.opts.CallerTimeout; timeout > 0 && r.MaxWait > timeout {
			l.add("PN006", Warning, family, i, "maxWait", "calls wait for up to %v, but their callers give up after %v: make maxWait shorter", r.MaxWait, timeout)
		}
		l.idleShare(i)
		if !r.Info().Named() {
			continue
		}
		for _, j := range flows.about(r.Resource) {
			if f := l.set.Flow[j]; everybody(f) && f.Metric == flow.Concurrency && f.Threshold <= float64(r.Threshold) {
				l.add("PN019", Warning, family, i, "maxQueue", "nobody ever waits: %s admits %v calls at once, including waiting ones, and the rule runs %d; remove that one, or make its threshold %d", l.at("flow", j), math.Floor(f.Threshold), r.Threshold, r.Threshold+r.MaxQueue)
				break
			}
		}
	}
}

// idleShare finds a share or an order without effect: of several enforced rules of a resource, only the tightest
// has a queue.
func (l *linter) idleShare(i int) {
	r := l.set.Isolation[i]
	field := "share"
	if r.Share.By == "" {
		field = "shed"
	}
	if r.Share.By == "" && r.Shed == spec.ShedNone || r.Mode != spec.Enforce {
		return
	}
	for _, j := range l.list("isolation").about(r.Resource) {
		other := l.set.Isolation[j]
		tighter := cmp.Or(cmp.Compare(other.Threshold, r.Threshold), cmp.Compare(other.MaxQueue, r.MaxQueue), cmp.Compare(other.MaxWait, r.MaxWait), cmp.Compare(j, i)) < 0
		if tighter && other.Unit == "" && !stricterIsolation(other, r) && other.Mode == spec.Enforce && !other.Shared() {
			l.add("PN027", Warning, "isolation", i, field, "nobody waits here: %s is tighter, and only the queue of the tightest rule is used; move it there", l.at("isolation", j))
			return
		}
	}
}

// stricterIsolation reports whether loose admits every call that strict admits: of several rules, the
// rule with the lowest threshold decides. It is only known for rules that count calls.
func stricterIsolation(strict, loose isolation.Rule) bool {
	if strict.Unit != "" || loose.Unit != "" {
		return false
	}
	if strict.Threshold != loose.Threshold {
		return strict.Threshold < loose.Threshold
	}
	return strict.MaxQueue <= loose.MaxQueue && strict.MaxWait <= loose.MaxWait
}

// breakers checks what can keep a breaker from ever opening.
func (l *linter) breakers() {
	for i, r := range l.set.Breaker {
		l.breaker("breaker", i, r)
	}
	for i, r := range l.set.Outlier {
		l.breaker("outlier", i, breaker.Rule{
			Resource: r.Resource, Match: r.Match, Mode: r.Mode, Strategy: r.Strategy, Threshold: r.Threshold, SlowRT: r.SlowRT, MinCalls: r.MinCalls, Interval: r.Interval,
		})
	}
}

func (l *linter) breaker(family string, i int, r breaker.Rule) {
	if r.Mode == spec.Off {
		return
	}
	if timeout := l.opts.CallerTimeout; timeout > 0 && r.Strategy == breaker.SlowRatio && r.SlowRT >= timeout {
		l.add("PN022", Warning, family, i, "slowRT", "callers wait for %v, and a call counts as slow after %v: none lasts that long; make slowRT shorter", timeout, r.SlowRT)
	}
	if r.Strategy == breaker.ConsecutiveErrors || !r.Info().Named() {
		return
	}
	field, need := "minCalls", float64(r.MinCalls)
	if r.Strategy == breaker.ErrorCount && math.Ceil(r.Threshold) > need {
		field, need = "threshold", math.Ceil(r.Threshold)
	}
	for _, j := range l.list("flow").about(r.Resource) {
		f := l.set.Flow[j]
		if n := most(f, r.Interval); everybody(f) && n > 0 && n < need {
			l.add("PN010", Warning, family, i, field, "the breaker never opens: it needs %v calls in %v, and %s admits at most %v; lower that number, or make interval at least %v", need, r.Interval, l.at("flow", j), n, enough(f, need))
			return
		}
	}
}

// enough returns the time in which a flow rule admits that many units.
func enough(f flow.Rule, units float64) time.Duration {
	perInterval := f.Threshold
	if counted(f) {
		perInterval = math.Floor(perInterval)
	}
	interval := f.Interval
	if f.Per != spec.PerNone {
		interval = calendar.Shortest(f.Per)
	}
	return time.Duration(min(math.Ceil(units/perInterval)*float64(interval), float64(24*time.Hour))).Round(time.Millisecond)
}
