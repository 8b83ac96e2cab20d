package replay

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
)

// JavaBreakerRule is a circuit breaker rule of Java Sentinel, with names for its
// numbers. A default rule has no resource.
type JavaBreakerRule struct {
	ID                 string   `json:"id"`
	Resource           string   `json:"resource"`
	Regex              bool     `json:"regex"`
	Strategy           string   `json:"strategy"` // slowRatio, errorRatio or errorCount
	MaxAllowedRtMs     float64  `json:"maxAllowedRtMs"`
	SlowRatioThreshold *float64 `json:"slowRatioThreshold"` // 1 if absent
	Threshold          float64  `json:"threshold"`
	OpenSec            int64    `json:"openSec"`
	MinRequests        *int64   `json:"minRequests"`    // 5 if absent
	StatIntervalMs     *int64   `json:"statIntervalMs"` // 1000 if absent
}

// TranslateBreakers gives the native rules that behave as the Java ones do, in their
// order, the default ones first.
//
// Java counts in one bucket, and trips above a threshold where we trip at it. A share
// of 1 is never exceeded, so an error ratio of 1 is a rule that is off; a slow ratio of
// 1 trips in Java too. Response times are compared in whole milliseconds there. Java
// waits for a probe without end; here that is a minute at least.
func TranslateBreakers(rules, defaults []JavaBreakerRule) (native []breaker.Rule, dropped []Dropped) {
	var own []breaker.Rule
	var without []string // resources whose own rule is none for us
	translate := func(list []JavaBreakerRule) (native []breaker.Rule) {
		var kept []JavaBreakerRule
		for _, rule := range list {
			rule = rule.withDefaults()
			if reason := rule.invalid(); reason != "" {
				dropped = append(dropped, Dropped{rule.ID, true, reason})
				continue
			}
			if id, twice := duplicateBreaker(kept, rule); twice {
				dropped = append(dropped, Dropped{rule.ID, true, "is the same as " + id})
				continue
			}
			kept = append(kept, rule)
			n, err := rule.native().Normalized()
			if err != nil {
				dropped = append(dropped, Dropped{rule.ID, false, err.Error()})
			} else {
				native = append(native, n)
			}
			if err != nil || n.Mode == spec.Off {
				without = append(without, rule.Resource)
			}
		}
		return native
	}
	own = translate(rules)
	except := without
	for i, rule := range defaults {
		rule.Resource = spec.AnyResource
		defaults[i] = rule
	}
	for _, rule := range translate(defaults) {
		rule.Exclude = except
		native = append(native, rule)
	}
	return append(native, own...), dropped
}

func (r JavaBreakerRule) withDefaults() JavaBreakerRule {
	if r.SlowRatioThreshold == nil {
		r.SlowRatioThreshold = new(1.0)
	}
	if r.MinRequests == nil {
		r.MinRequests = new(int64(5))
	}
	if r.StatIntervalMs == nil {
		r.StatIntervalMs = new(int64(1000))
	}
	return r
}

// invalid says why Java drops the rule, "" if it keeps it.
func (r JavaBreakerRule) invalid() string {
	switch {
	case strings.TrimSpace(r.Resource) == "":
		return "has no resource"
	case r.OpenSec <= 0:
		return "has no recovery time"
	case *r.MinRequests <= 0:
		return "has no least number of requests"
	case *r.StatIntervalMs <= 0:
		return "has no interval"
	case r.Strategy == "slowRatio" && (*r.SlowRatioThreshold < 0 || *r.SlowRatioThreshold > 1 || r.MaxAllowedRtMs < 0):
		return "has a slow ratio out of range"
	case r.Strategy == "errorRatio" && r.Threshold > 1:
		return "has an error ratio above 1"
	case !(r.Threshold >= 0):
		return "has a negative threshold"
	}
	return ""
}

func duplicateBreaker(kept []JavaBreakerRule, rule JavaBreakerRule) (id string, found bool) {
	key := func(r JavaBreakerRule) string {
		return fmt.Sprint(r.Resource, r.Regex, r.Strategy, r.MaxAllowedRtMs, *r.SlowRatioThreshold, r.Threshold,
			r.OpenSec, *r.MinRequests, *r.StatIntervalMs)
	}
	for _, k := range kept {
		if key(k) == key(rule) {
			return k.ID, true
		}
	}
	return "", false
}

func (r JavaBreakerRule) native() breaker.Rule {
	n := breaker.Rule{
		ID: r.ID, Resource: r.Resource, Match: matchOf(r.Regex), Buckets: 1,
		MinCalls: int(*r.MinRequests),
		Interval: time.Duration(*r.StatIntervalMs) * time.Millisecond,
		Recovery: time.Duration(r.OpenSec) * time.Second,
	}
	n.ProbeTimeout = max(n.Recovery, time.Minute)
	above := func(ratio float64) float64 { return math.Nextafter(ratio, 2) }
	switch r.Strategy {
	case "slowRatio":
		n.Strategy = breaker.SlowRatio
		n.SlowRT = max(1, time.Duration(math.Round(r.MaxAllowedRtMs))*time.Millisecond)
		n.Threshold = min(1, above(*r.SlowRatioThreshold))
	case "errorRatio":
		n.Strategy, n.Threshold = breaker.ErrorRatio, above(r.Threshold)
		if r.Threshold >= 1 {
			n.Threshold, n.Mode = 1, spec.Off
		}
	case "errorCount":
		n.Strategy, n.Threshold = breaker.ErrorCount, math.Floor(r.Threshold)+1
	}
	return n
}
