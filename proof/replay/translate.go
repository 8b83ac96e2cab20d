package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/stat"
)

// JavaFlowRule is a flow rule of Java Sentinel, with names for its numbers.
type JavaFlowRule struct {
	ID                string  `json:"id"`
	Resource          string  `json:"resource"`
	Regex             bool    `json:"regex"`
	LimitApp          string  `json:"limitApp"` // "default" if empty
	Grade             string  `json:"grade"`    // qps (default) or concurrency
	Count             float64 `json:"count"`    // per second, whatever the window
	Strategy          string  `json:"strategy"` // direct (default), associate or chain
	RefResource       string  `json:"refResource"`
	ControlBehavior   string  `json:"controlBehavior"`   // reject (default), warmUp, throttle or warmUpThrottle
	WarmUpPeriodSec   *int64  `json:"warmUpPeriodSec"`   // 10 if absent
	MaxQueueingTimeMs *int64  `json:"maxQueueingTimeMs"` // 500 if absent
}

// Dropped is a Java rule that has no native counterpart.
type Dropped struct {
	ID string
	// ByJava says that Java drops the rule at load as well. Otherwise Java keeps it
	// and we refuse it (C6, C9 of semantics.md §3), for the reason given.
	ByJava bool
	Reason string
}

// TranslateFlow gives the native rules that behave as the Java ones do, in their
// order. shape is the second window that Java counts in, coldFactor its cold
// factor.
//
// A Java threshold is per second whatever the window; a native one is per
// interval. A Java throttle looks at no window, and its threshold stays per
// second. A Java concurrency rule ignores its behavior.
func TranslateFlow(rules []JavaFlowRule, shape stat.Shape, coldFactor int) (native []flow.Rule, dropped []Dropped) {
	var kept []JavaFlowRule
	for _, rule := range rules {
		rule = rule.withDefaults()
		if reason := rule.invalid(); reason != "" {
			dropped = append(dropped, Dropped{rule.ID, true, reason})
			continue
		}
		if id, twice := duplicate(kept, rule); twice {
			dropped = append(dropped, Dropped{rule.ID, true, "is the same as " + id})
			continue
		}
		kept = append(kept, rule)
		n, err := rule.native(shape, coldFactor)
		if err != nil {
			dropped = append(dropped, Dropped{rule.ID, false, err.Error()})
			continue
		}
		native = append(native, n)
	}
	return native, dropped
}

func (r JavaFlowRule) withDefaults() JavaFlowRule {
	r.LimitApp = orElse(strings.TrimSpace(r.LimitApp) != "", r.LimitApp, "default")
	r.Grade = orElse(r.Grade != "", r.Grade, "qps")
	r.Strategy = orElse(r.Strategy != "", r.Strategy, "direct")
	r.ControlBehavior = orElse(r.ControlBehavior != "", r.ControlBehavior, "reject")
	if r.WarmUpPeriodSec == nil {
		r.WarmUpPeriodSec = new(int64(10))
	}
	if r.MaxQueueingTimeMs == nil {
		r.MaxQueueingTimeMs = new(int64(500))
	}
	return r
}

func orElse(ok bool, value, other string) string {
	if ok {
		return value
	}
	return other
}

// invalid says why Java drops the rule, "" if it keeps it. Of a concurrency rule
// it looks at neither strategy nor behavior.
func (r JavaFlowRule) invalid() string {
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	switch {
	case blank(r.Resource):
		return "has no resource"
	case !(r.Count >= 0):
		return "has a negative count"
	case r.Grade != "qps":
		return ""
	case r.Strategy != "direct" && blank(r.RefResource):
		return "has no reference resource"
	case strings.HasPrefix(r.ControlBehavior, "warmUp") && *r.WarmUpPeriodSec <= 0:
		return "has no warm-up period"
	case r.queues() && *r.MaxQueueingTimeMs <= 0:
		return "has no queueing time"
	}
	return ""
}

func (r JavaFlowRule) queues() bool {
	return r.ControlBehavior == "throttle" || r.ControlBehavior == "warmUpThrottle"
}

// duplicate finds a rule that is the same in everything but the ID: to Java they
// are one.
func duplicate(kept []JavaFlowRule, rule JavaFlowRule) (id string, found bool) {
	key := func(r JavaFlowRule) any {
		return [...]any{r.Resource, r.Regex, r.LimitApp, r.Grade, r.Count, r.Strategy, r.RefResource,
			r.ControlBehavior, *r.WarmUpPeriodSec, *r.MaxQueueingTimeMs}
	}
	for _, k := range kept {
		if key(k) == key(rule) {
			return k.ID, true
		}
	}
	return "", false
}

var (
	metrics   = map[string]flow.Metric{"qps": flow.QPS, "concurrency": flow.Concurrency}
	relations = map[string]flow.Relation{"direct": flow.Direct, "associate": flow.Associated, "chain": flow.Chain}
	behaviors = map[string]flow.Behavior{
		"reject": flow.Reject, "warmUp": flow.WarmUp, "throttle": flow.Throttle, "warmUpThrottle": flow.WarmUpThrottle,
	}
)

func matchOf(regex bool) spec.Match {
	if regex {
		return spec.MatchRegex
	}
	return spec.MatchExact
}

// native is the rule in our words, or the first field that we can't honour.
func (r JavaFlowRule) native(shape stat.Shape, coldFactor int) (flow.Rule, error) {
	n := flow.Rule{
		ID: r.ID, Resource: r.Resource, Match: matchOf(r.Regex), Origin: r.LimitApp,
		Threshold: r.Count,
	}
	var known [3]bool
	n.Metric, known[0] = metrics[r.Grade]
	n.Relation, known[1] = relations[r.Strategy]
	n.Behavior, known[2] = behaviors[r.ControlBehavior]
	if known != [3]bool{true, true, true} {
		return n, fmt.Errorf("unknown grade %q, strategy %q or behavior %q", r.Grade, r.Strategy, r.ControlBehavior)
	}
	if n.Relation != flow.Direct {
		n.Ref = r.RefResource
	}
	switch {
	case n.Metric == flow.Concurrency:
		n.Behavior = flow.Reject
	case r.queues():
		n.Interval = time.Second
		n.MaxWait = time.Duration(*r.MaxQueueingTimeMs) * time.Millisecond
	default:
		n.Interval, n.Buckets, n.Window = shape.Interval, shape.Buckets, flow.Ring
		n.Threshold = r.Count * shape.Interval.Seconds()
	}
	if n.Behavior == flow.WarmUp || n.Behavior == flow.WarmUpThrottle {
		n.WarmUpPeriod = time.Duration(*r.WarmUpPeriodSec) * time.Second
		n.ColdFactor = coldFactor
	}
	return n.Normalized(coldFactor)
}
