package replay

import (
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/stat"
)

// JavaFlowRule is a flow rule of Java Sentinel, with names for its numbers.
type JavaFlowRule struct {
	ID                string  `json:"id"`
	Resource          string  `json:"resource"`
	Regex             bool    `json:"regex"`
	LimitApp          string  `json:"limitApp"` // "default" if empty
	Grade             string  `json:"grade"`    // qps (default) or concurrency
	Count             float64 `json:"count"`    // per second, regardless of the window
	Strategy          string  `json:"strategy"` // direct (default), associate or chain
	RefResource       string  `json:"refResource"`
	ControlBehavior   string  `json:"controlBehavior"`   // reject (default), warmUp, throttle or warmUpThrottle
	WarmUpPeriodSec   *int64  `json:"warmUpPeriodSec"`   // 10 if absent
	MaxQueueingTimeMs *int64  `json:"maxQueueingTimeMs"` // 500 if absent
}

// Dropped is a Java rule that has no native counterpart.
type Dropped struct {
	ID string
	// ByJava means that Java drops the rule at load as well. Otherwise Java keeps it and we reject
	// it (C6, C9 of semantics.md §3), for the given reason.
	ByJava bool
	Reason string
}

// Java's numbers for the names in the traces.
var (
	grades     = []string{"concurrency", "qps"}
	strategies = []string{"direct", "associate", "chain"}
	behaviors  = []string{"reject", "warmUp", "throttle", "warmUpThrottle"}
)

// number returns the number of a name, or other if the name is empty, or -1, which Java doesn't
// know, if the name is unknown.
func number(names []string, name string, other int) int {
	if name == "" {
		return other
	}
	return slices.Index(names, name)
}

// orElse returns the number in a trace, or Java's default.
func orElse(given *int64, other int) int {
	if given == nil {
		return other
	}
	return int(*given)
}

// TranslateFlow returns native rules that behave like the Java ones, in their order. shape is the
// second window that Java counts in, coldFactor its cold factor.
func TranslateFlow(rules []JavaFlowRule, shape stat.Shape, coldFactor int) (native []flow.Rule, dropped []Dropped) {
	return translate(rules, JavaFlowRule.java, func(r sentinel.JavaFlow) (flow.Rule, error) {
		n, err := r.In(shape, coldFactor)
		if err != nil {
			return n, err
		}
		return n.Normalized(coldFactor)
	})
}

// java returns the rule in the form of Java's rule files.
func (r JavaFlowRule) java() (id string, rule sentinel.JavaFlow) {
	unset := sentinel.JavaFlowUnset
	rule = sentinel.JavaFlow{
		Resource: r.Resource, LimitApp: r.LimitApp, Regex: r.Regex, Count: r.Count, RefResource: r.RefResource,
		Grade:             number(grades, r.Grade, unset.Grade),
		Strategy:          number(strategies, r.Strategy, unset.Strategy),
		ControlBehavior:   number(behaviors, r.ControlBehavior, unset.ControlBehavior),
		WarmUpPeriodSec:   orElse(r.WarmUpPeriodSec, unset.WarmUpPeriodSec),
		MaxQueueingTimeMs: orElse(r.MaxQueueingTimeMs, unset.MaxQueueingTimeMs),
	}
	if strings.TrimSpace(r.LimitApp) == "" {
		rule.LimitApp = flow.OriginDefault
	}
	return r.ID, rule
}

func (r JavaFlowRule) queues() bool {
	_, rule := r.java()
	return rule.Queues()
}

// translate returns the native rules for the rules of a trace, in the same order, and the rules
// without a native counterpart. java splits a rule into its ID and its content: Java treats rules
// with equal content as one.
func translate[R any, J interface {
	comparable
	Check() error
}, N spec.Rule](rules []R, java func(R) (string, J), native func(J) (N, error)) (natives []N, dropped []Dropped) {
	kept := make(map[J]string)
	for _, r := range rules {
		id, rule := java(r)
		if err := rule.Check(); err != nil {
			dropped = append(dropped, Dropped{id, true, err.Error()})
			continue
		}
		if first, twice := kept[rule]; twice {
			dropped = append(dropped, Dropped{id, true, "is the same as " + first})
			continue
		}
		kept[rule] = id
		n, err := native(rule)
		if err != nil {
			dropped = append(dropped, Dropped{id, false, err.Error()})
			continue
		}
		natives = append(natives, spec.WithID(n, id))
	}
	return natives, dropped
}
