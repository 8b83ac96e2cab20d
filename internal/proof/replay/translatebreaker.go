package replay

import (
	"slices"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/sentinel"
)

// JavaBreakerRule is a circuit breaker rule of Java Sentinel, with names for its numbers. A default
// rule has no resource.
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

// breaks are the conditions for opening, in Java's numbering.
var breaks = []string{"slowRatio", "errorRatio", "errorCount"}

// TranslateBreakers returns native rules that behave like the Java ones, in their order, the
// default ones first.
func TranslateBreakers(rules, defaults []JavaBreakerRule) (native []breaker.Rule, dropped []Dropped) {
	own, dropped := translate(rules, JavaBreakerRule.java, nativeBreaker)
	var without []string // resources whose own rule we don't have
	for _, r := range rules {
		isOn := func(n breaker.Rule) bool { return n.ID == r.ID && n.Mode != spec.Off }
		droppedByJava := func(d Dropped) bool { return d.ID == r.ID && d.ByJava }
		if !slices.ContainsFunc(own, isOn) && !slices.ContainsFunc(dropped, droppedByJava) {
			without = append(without, r.Resource)
		}
	}
	for i := range defaults {
		defaults[i].Resource = spec.AnyResource
	}
	native, more := translate(defaults, JavaBreakerRule.java, nativeBreaker)
	for i := range native {
		native[i].Exclude = without
	}
	return append(native, own...), append(dropped, more...)
}

func nativeBreaker(r sentinel.JavaBreaker) (breaker.Rule, error) {
	rules, _, err := r.Native()
	if err != nil {
		return breaker.Rule{}, err
	}
	return rules[0].Normalized()
}

// java returns the rule in the form of Java's rule files.
func (r JavaBreakerRule) java() (id string, rule sentinel.JavaBreaker) {
	unset := sentinel.JavaBreakerUnset
	rule = sentinel.JavaBreaker{
		Resource: r.Resource, Regex: r.Regex, Grade: number(breaks, r.Strategy, unset.Grade), Count: r.Threshold,
		SlowRatioThreshold: unset.SlowRatioThreshold,
		TimeWindow:         int(r.OpenSec),
		MinRequestAmount:   orElse(r.MinRequests, unset.MinRequestAmount),
		StatIntervalMs:     orElse(r.StatIntervalMs, unset.StatIntervalMs),
	}
	if r.Strategy == "slowRatio" {
		rule.Count = r.MaxAllowedRtMs
	}
	if r.SlowRatioThreshold != nil {
		rule.SlowRatioThreshold = *r.SlowRatioThreshold
	}
	return r.ID, rule
}
