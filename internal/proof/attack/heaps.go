package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// heapShape describes many rules that share something, and calls to which they apply.
type heapShape struct {
	name string
	add  func(set *rules.Set, i int)
	call func(i int) (name, context, origin string)
}

func aName(i int) string { return fmt.Sprint("resource ", i) }

func toEach(i int) (string, string, string)  { return aName(i), "", "" }
func toFirst(i int) (string, string, string) { return aName(0), fmt.Sprint("c", i), fmt.Sprint("o", i) }

func addFlow(make func(i int) flow.Rule) func(*rules.Set, int) {
	return func(set *rules.Set, i int) {
		rule := make(i)
		rule.ID = fmt.Sprint("rule ", i)
		rule.Threshold = max(rule.Threshold, 1000)
		set.Flow = append(set.Flow, rule)
	}
}

// heaps are in no order.
var heaps = []heapShape{
	{"rules each for a resource", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(i)} }), toEach},
	{"expressions", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: fmt.Sprint("x.*", i), Match: spec.MatchRegex} }), toEach},
	{"expressions for one name each", addFlow(func(i int) flow.Rule {
		return flow.Rule{Resource: "resource [" + fmt.Sprint(i%10) + "]", Match: spec.MatchRegex}
	}), toFirst},
	{"an origin each", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(0), Origin: fmt.Sprint("o", i)} }), toFirst},
	{"an origin each, of as many resources", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(i), Origin: "o1"} }), toEach},
	{"a context each", addFlow(func(i int) flow.Rule {
		return flow.Rule{Resource: aName(0), Relation: flow.Chain, Ref: fmt.Sprint("c", i)}
	}), toFirst},
	{"all looking at one resource", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(i), Relation: flow.Associated, Ref: aName(0)} }), toEach},
	{"one looking at each resource", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(0), Relation: flow.Associated, Ref: aName(i)} }), toEach},
	{"an interval each", addFlow(func(i int) flow.Rule {
		return flow.Rule{Resource: aName(0), Interval: time.Second + time.Duration(i)*50}
	}), toFirst},
	{"an interval each, of others", addFlow(func(i int) flow.Rule {
		return flow.Rule{Resource: aName(0), Interval: time.Second + time.Duration(i)*50, Origin: flow.OriginOther}
	}), toEach},
	{"throttles on one resource", addFlow(func(i int) flow.Rule {
		return flow.Rule{Resource: aName(0), Behavior: flow.Throttle, Threshold: 1e6 + float64(i)}
	}), toEach},
	{"in shadow mode on one resource", addFlow(func(i int) flow.Rule { return flow.Rule{Resource: aName(0), Mode: spec.Shadow, Threshold: 1e6} }), toFirst},
	{"isolation rules on one resource", func(set *rules.Set, i int) {
		set.Isolation = append(set.Isolation, isolation.Rule{ID: fmt.Sprint(i), Resource: aName(0), Threshold: 1000 + i})
	}, toEach},
	{"deny lists on one resource", func(set *rules.Set, i int) {
		set.Authority = append(set.Authority, authority.Rule{ID: fmt.Sprint(i), Resource: aName(0), List: authority.Deny, Origins: []string{"x"}})
	}, toFirst},
	{"one long list", func(set *rules.Set, i int) {
		if i == 0 {
			set.Authority = append(set.Authority, authority.Rule{ID: "list", Resource: aName(0), List: authority.Deny})
		}
		set.Authority[0].Origins = append(set.Authority[0].Origins, fmt.Sprint("x", i))
	}, toFirst},
	{"hotspot rules on one resource", func(set *rules.Set, i int) {
		set.Hotspot = append(set.Hotspot, hotspot.Rule{ID: fmt.Sprint(i), Resource: aName(0), Param: fmt.Sprint(i), Threshold: 1000, MaxValues: 1})
	}, toEach},
	{"exceptions of one hotspot rule", func(set *rules.Set, i int) {
		if i == 0 {
			set.Hotspot = append(set.Hotspot, hotspot.Rule{ID: "values", Resource: aName(0), Param: "user", Threshold: 1000, MaxValues: 1})
		}
		set.Hotspot[0].Exceptions = append(set.Hotspot[0].Exceptions, hotspot.Exception{Value: argument.Of(i), Threshold: 1000})
	}, toEach},
	{"system rules", func(set *rules.Set, i int) {
		set.System = append(set.System, system.Rule{ID: fmt.Sprint(i), Metric: system.QPS, Threshold: 1e6, Interval: time.Second + time.Duration(i)*50})
	}, func(int) (string, string, string) { return toFirst(0) }},
	{"breakers, one for each resource", func(set *rules.Set, i int) {
		set.Breaker = append(set.Breaker, breaker.Rule{ID: fmt.Sprint(i), Resource: aName(i), Threshold: 1})
	}, toEach},
	{"one breaker for all, with exceptions", func(set *rules.Set, i int) {
		if i == 0 {
			set.Breaker = append(set.Breaker, breaker.Rule{ID: "all", Resource: spec.AnyResource, Threshold: 1})
		}
		set.Breaker[0].Exclude = append(set.Breaker[0].Exclude, fmt.Sprint("x", i))
	}, toEach},
}
