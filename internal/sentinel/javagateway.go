package sentinel

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/rules/gateway"
)

// JavaGateway is a GatewayFlowRule. Java turns it into a ParamFlowRule, even without a paramItem.
type JavaGateway struct {
	ID                   ID         `yaml:"id,omitempty"`
	Resource             string     `yaml:"resource,omitempty"`
	ResourceMode         int        `yaml:"resourceMode,omitempty"` // 0 a route, 1 an API group
	Grade                int        `yaml:"grade,omitempty"`        // 0 calls in flight, 1 per interval
	Count                float64    `yaml:"count"`
	IntervalSec          int        `yaml:"intervalSec,omitempty"`
	ControlBehavior      int        `yaml:"controlBehavior,omitempty"` // 2 throttle, otherwise reject
	Burst                int        `yaml:"burst,omitempty"`
	MaxQueueingTimeoutMs int        `yaml:"maxQueueingTimeoutMs,omitempty"`
	ParamItem            *JavaParam `yaml:"paramItem,omitempty"` // nil means that all requests share the limit
	ClusterMode          bool       `yaml:"clusterMode,omitempty"`

	// The dashboard writes these instead of IntervalSec; Sentinel's library ignores them.
	Interval     int `yaml:"interval,omitempty"`
	IntervalUnit int `yaml:"intervalUnit,omitempty"` // 0 seconds, 1 minutes, 2 hours, 3 days
}

// unset marks a number that is missing in a file.
const unset = math.MinInt32

var javaUnits = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}

// JavaParam is a GatewayParamFlowItem: a part of the request; the limit applies to each of its
// values.
type JavaParam struct {
	Index         int    `yaml:"index,omitempty"`         // internal to Sentinel
	ParseStrategy int    `yaml:"parseStrategy,omitempty"` // 0 client IP, 1 host, 2 header, 3 query, 4 cookie
	FieldName     string `yaml:"fieldName,omitempty"`
	Pattern       string `yaml:"pattern,omitempty"`
	MatchStrategy int    `yaml:"matchStrategy,omitempty"` // 0 exact, 1 prefix, 2 regex, 3 contains
}

// JavaGatewayUnset holds Java's defaults.
var JavaGatewayUnset = JavaGateway{Grade: 1, IntervalSec: unset, MaxQueueingTimeoutMs: 500}

var (
	javaParams  = []gateway.Param{gateway.ClientIP, gateway.Host, gateway.Header, gateway.Query, gateway.Cookie}
	javaMatches = []gateway.ValueMatch{gateway.Exact, gateway.Prefix, gateway.Regex, gateway.Contains}
)

// Check returns the reason for which Java drops the rule.
func (r JavaGateway) Check() error {
	var f first
	f.bad(blank(r.Resource), "resource", needsResource)
	f.bad(!(r.Count >= 0), "count", "is %v: use 0 or more", r.Count)
	f.bad(r.Burst < 0, "burst", "is %d: use 0 or more", r.Burst)
	f.bad(r.IntervalSec != unset && r.IntervalSec <= 0, "intervalSec", "is %d: use 1 second or more", r.IntervalSec)
	f.bad(r.ControlBehavior < 0, "controlBehavior", "is %d: use 0, reject, or 2, throttle", r.ControlBehavior)
	if r.IntervalSec == unset {
		f.bad(r.Interval == 0 && r.IntervalUnit != 0, "intervalUnit", "needs interval, which is missing: write intervalSec")
		f.bad(r.Interval < 0, "interval", "is %d: use 1 or more", r.Interval)
		f.bad(r.IntervalUnit < 0 || r.IntervalUnit >= len(javaUnits), "intervalUnit", "is %d: use a number from 0 to %d", r.IntervalUnit, len(javaUnits)-1)
	}
	if p := r.ParamItem; p != nil {
		named := p.ParseStrategy >= 2 && p.ParseStrategy < len(javaParams)
		f.bad(named && blank(p.FieldName), "paramItem", "needs fieldName: say which header, query parameter or cookie")
	}
	return f.err
}

// interval returns the rule's interval, with a warning if only the dashboard understands it.
func (r JavaGateway) interval() (time.Duration, []Warning) {
	switch {
	case r.IntervalSec != unset:
		return period(r.IntervalSec, time.Second), nil
	case r.Interval == 0:
		return time.Second, nil
	}
	interval := period(r.Interval, javaUnits[r.IntervalUnit])
	return interval, []Warning{{"dashboard-interval", "interval", fmt.Sprintf(
		"is a field of the dashboard, with intervalUnit, and is read as %.0f s; Sentinel's clients read only intervalSec, with 1 s as the default: write intervalSec", interval.Seconds())}}
}

// Native translates the rule. In Java every threshold is a whole number.
func (r JavaGateway) Native() (rules []gateway.Rule, warnings []Warning, err error) {
	if err := errCluster(r.ClusterMode); err != nil {
		return nil, nil, err
	}
	n := gateway.Rule{ID: string(r.ID), Threshold: math.Trunc(r.Count)}
	warnings = fraction(r.Count)
	switch r.ResourceMode {
	case 0:
		n.Route = r.Resource
	case 1:
		n.Group = r.Resource
	default:
		return nil, nil, spec.BadField("resourceMode", "is %d: use 0 for a route, or 1 for an API group", r.ResourceMode)
	}
	if n.Metric, err = meaning("grade", r.Grade, JavaHotspotMetrics); err != nil {
		return nil, nil, err
	}
	if p := r.ParamItem; p != nil {
		more, err := p.applyTo(&n)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, more...)
	}
	if n.Metric == hotspot.QPS {
		interval, more := r.interval()
		n.Interval, warnings = unlessDefault(interval), append(warnings, more...)
		switch {
		case r.ControlBehavior == JavaThrottle:
			n.Behavior, n.MaxWait = hotspot.Throttle, patience(r.MaxQueueingTimeoutMs)
		case n.Param == gateway.None && r.Burst > 0 && n.Threshold >= 1:
			// Java's bucket holds the sum of both; ours holds one more than its burst.
			n.Behavior, n.Burst = hotspot.TokenBucket, int(min(n.Threshold+float64(r.Burst), math.MaxInt32))-1
		case n.Param != gateway.None:
			n.Window, n.Burst = hotspot.Refill, r.Burst
		}
		if r.ControlBehavior != 0 && r.ControlBehavior != JavaThrottle {
			warnings = append(warnings, noWarmUp())
		}
	}
	return []gateway.Rule{n}, warnings, nil
}

// applyTo makes the rule limit each value of the parameter.
func (p JavaParam) applyTo(n *gateway.Rule) (warnings []Warning, err error) {
	if n.Param, err = meaning("paramItem", p.ParseStrategy, javaParams); err != nil {
		return nil, err
	}
	if n.Param != gateway.ClientIP && n.Param != gateway.Host {
		n.Name = p.FieldName
	}
	if p.Pattern == "" {
		return nil, nil
	}
	n.Value = p.Pattern
	if n.ValueMatch, err = meaning("paramItem", p.MatchStrategy, javaMatches); err != nil {
		return nil, err
	}
	if n.ValueMatch == gateway.Prefix {
		warnings = append(warnings, Warning{"prefix-of-a-value", "paramItem",
			"has matchStrategy 1, prefix, which in Sentinel matches every value; here it matches only values with that prefix"})
	}
	return warnings, nil
}

// JavaAPI is an ApiDefinition: a group of paths.
type JavaAPI struct {
	ID             ID         `yaml:"id,omitempty"` // set by the dashboard
	APIName        string     `yaml:"apiName"`
	PredicateItems []JavaPath `yaml:"predicateItems"`
}

// JavaPath is an ApiPathPredicateItem.
type JavaPath struct {
	Pattern       string `yaml:"pattern"`
	MatchStrategy int    `yaml:"matchStrategy,omitempty"` // 0 exact, 1 a pattern as in /orders/**, 2 regex

	// Items make it an ApiPredicateGroupItem, which Sentinel reads and never evaluates.
	Items []JavaPath `yaml:"items,omitempty"`
}

func (p JavaPath) isGroup() bool { return p.Pattern == "" && p.Items != nil }

// MayOmit reports whether the item needs no such key.
func (p JavaPath) MayOmit(key string) bool { return key == "pattern" && p.isGroup() }

// Check returns the reason for which Java drops the definition.
func (a JavaAPI) Check() error {
	var f first
	f.bad(blank(a.APIName), "apiName", "is required: Sentinel drops a definition without one")
	f.bad(len(a.PredicateItems) == 0, "predicateItems", "is empty: Sentinel drops a definition without paths")
	return f.err
}

// Native translates the group.
func (a JavaAPI) Native() (groups []gateway.Group, warnings []Warning, err error) {
	g := gateway.Group{ID: a.APIName}
	for i, item := range a.PredicateItems {
		if item.isGroup() {
			warnings = append(warnings, Warning{"group-in-a-group", "predicateItems", fmt.Sprintf(
				"number %d is a nested group, which Sentinel ignores, so its paths are left out here too: list them in predicateItems", i)})
			continue
		}
		paths, err := item.native()
		if err != nil {
			return nil, nil, spec.BadField("predicateItems", "number %d: %v", i, err)
		}
		g.Paths = append(g.Paths, paths...)
	}
	if len(g.Paths) == 0 {
		return nil, nil, spec.BadField("predicateItems", "has only nested groups, which Sentinel ignores: list the paths themselves")
	}
	return []gateway.Group{g}, warnings, nil
}

func (p JavaPath) native() ([]gateway.Path, error) {
	switch p.MatchStrategy {
	case 0:
		return []gateway.Path{{Path: p.Pattern}}, nil
	case 1:
		return antPaths(p.Pattern)
	case 2:
		return []gateway.Path{{Path: p.Pattern, Match: spec.MatchRegex}}, nil
	}
	return nil, spec.BadField("matchStrategy", "is %d: use 0 for a path, 1 for a pattern, or 2 for an expression", p.MatchStrategy)
}

// antPaths translates an Ant pattern: a star matches any part of a path, and two stars at the end
// match the remainder, if any.
func antPaths(pattern string) ([]gateway.Path, error) {
	base, all := strings.CutSuffix(pattern, "/**")
	stars := false
	for part := range strings.SplitSeq(base, "/") {
		stars = stars || part == "*"
		if part != "*" && strings.ContainsAny(part, "*?{}") || stars && all {
			return nil, spec.BadField("pattern", "%q has unsupported wildcards: use matchStrategy 2 with a regular expression", pattern)
		}
	}
	switch {
	case stars:
		return []gateway.Path{{Path: base, Match: spec.MatchPath}}, nil
	case !all:
		return []gateway.Path{{Path: base}}, nil
	case base == "":
		return []gateway.Path{{Path: "/*", Match: spec.MatchPrefix}}, nil
	}
	return []gateway.Path{{Path: base}, {Path: base + "/*", Match: spec.MatchPrefix}}, nil
}
