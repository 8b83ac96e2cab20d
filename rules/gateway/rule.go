package gateway

import (
	"cmp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
)

// Rule limits a route or a group of a gateway. One of the two and Threshold are enough:
//
//	gateway.Rule{Group: "shop", Threshold: 100}
//	gateway.Rule{Route: "GET /search", Param: gateway.ClientIP, Threshold: 5}
//
// The first admits a hundred requests a second to the whole group, the second five from each
// client. A rule without Param becomes a flow rule of the resource, a rule with Param a hotspot rule;
// see there for the fields.
type Rule struct {
	// ID names the rule in errors, logs and statistics, and links it to its predecessor on a
	// reload. If empty, it is derived from the other fields. No flow or hotspot rule may have the
	// same ID.
	ID string `yaml:"id,omitempty"`
	// Route is the resource of a route, as the gateway names it.
	Route string `yaml:"route,omitempty"`
	// Group is the ID of a [Group], instead of a route.
	Group string `yaml:"group,omitempty"`
	// Param is the part of a request whose values are limited one by one. The zero value is none:
	// all requests share the limit.
	Param Param `yaml:"param,omitempty"`
	// Name is the name of the header, query parameter or cookie. Required for these, refused for
	// others.
	Name string `yaml:"name,omitempty"`
	// Value restricts the rule to equal or, with ValueMatch, matching values. "" means all values.
	Value string `yaml:"value,omitempty"`
	// ValueMatch selects how Value is matched. The zero value is [Exact].
	ValueMatch ValueMatch `yaml:"valueMatch,omitempty"`
	// Missing decides about a request without the param; see hotspot.Rule. With refuse, a client
	// can't evade the limit by leaving out a header. The zero value is unlimited. Only with a
	// Param, and without a Value, since a request with another value would count as one without.
	Missing hotspot.Missing `yaml:"missing,omitempty"`
	// Threshold is the limit: requests per Interval for hotspot.QPS, requests in flight for
	// hotspot.Concurrency. 0 blocks every request.
	Threshold float64 `yaml:"threshold"`
	// Interval is the period of Threshold. 10 ms to 24 h; 0 means one second.
	Interval time.Duration `yaml:"interval,omitempty"`
	// Window selects the intervals in which the limit holds; see hotspot.Rule. The zero value is
	// hotspot.Strict. hotspot.Refill needs a Param.
	Window hotspot.Window `yaml:"strict,omitempty"`
	// Burst is the number of requests that may pass beyond Threshold; see hotspot.Rule. Without Param
	// it needs the behavior hotspot.TokenBucket or hotspot.Throttle.
	Burst int `yaml:"burst,omitempty"`
	// Metric is the quantity that Threshold limits. The zero value is hotspot.QPS.
	Metric hotspot.Metric `yaml:"metric,omitempty"`
	// Behavior decides what happens to requests over the limit. The zero value is hotspot.Reject.
	Behavior hotspot.Behavior `yaml:"behavior,omitempty"`
	// MaxWait is the longest queueing time of hotspot.Throttle. 0 means 500 ms.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// MaxValues is the number of values that the rule tracks; further ones share limits. 0 means
	// 10,000. Only with Param.
	MaxValues int `yaml:"maxValues,omitempty"`
	// Mode selects whether the rule is enforced. The zero value is api.Enforce.
	Mode spec.Mode `yaml:"mode,omitempty"`
}

// Target returns the resource that the rule limits.
func (r Rule) Target() string {
	if r.Group != "" {
		return r.Group
	}
	return r.Route
}

// Normalized returns the rule with defaults filled in for every field that it reads. It returns a
// [spec.FieldError] for the first invalid field.
func (r Rule) Normalized() (Rule, error) {
	switch {
	case r.Route == "" && r.Group == "":
		return r, spec.BadField("route", "or group is required: name the route or the group to limit")
	case r.Route != "" && r.Group != "":
		return r, spec.BadField("group", "does not go with route: a rule limits one of them")
	case r.Route == spec.AnyResource:
		return r, spec.BadField("route", `is "*": name the route, or write a flow or a hotspot rule for all resources`)
	case !paramNames.Has(r.Param):
		return r, spec.BadField("param", "%d is unknown: use gateway.None, ClientIP, Host, Header, Query or Cookie", r.Param)
	case !matchNames.Has(r.ValueMatch):
		return r, spec.BadField("valueMatch", "%d is unknown: use gateway.Exact, Prefix, Regex or Contains", r.ValueMatch)
	case r.Param.named() && r.Name == "":
		return r, spec.BadField("name", "is required: say which %v", r.Param)
	case !r.Param.named() && r.Name != "":
		return r, spec.BadField("name", "has no meaning for param %v: remove it", r.Param)
	case r.Param == None && r.Value != "":
		return r, spec.BadField("value", "has no meaning without a param: remove it")
	case r.Param == None && r.Missing != hotspot.MissingNone:
		return r, spec.BadField("missing", "has no meaning without a param: remove it")
	case r.Value != "" && r.Missing != hotspot.MissingNone:
		return r, spec.BadField("missing", "does not go with value: requests with another value would count as those without one; remove one of the two")
	case r.Value == "" && r.ValueMatch != Exact:
		return r, spec.BadField("valueMatch", "has no meaning without a value: remove it")
	case r.Param == None && r.MaxValues != 0:
		return r, spec.BadField("maxValues", "has no meaning without a param: remove it")
	case r.Param == None && r.Window != hotspot.Strict:
		return r, spec.BadField("strict", "has no meaning without a param: remove it")
	case r.Param == None && r.Burst != 0 && r.Behavior == hotspot.Reject:
		return r, spec.BadField("burst", "has no meaning without a param for behavior %v: set behavior to tokenBucket or throttle, or remove it", r.Behavior)
	}
	for _, x := range [...]struct{ field, text string }{{"route", r.Route}, {"group", r.Group}, {"name", r.Name}, {"value", r.Value}} {
		if err := spec.CheckName(x.field, x.text); err != nil {
			return r, err
		}
	}
	if r.ValueMatch == Regex {
		if _, err := pattern.Size(r.Value); err != nil {
			return r, spec.BadField("value", "%v", err)
		}
	}
	if r.Param == Header {
		r.Name = strings.ToLower(r.Name)
	}
	r.ID = cmp.Or(r.ID, r.Like())
	if r.Param == None {
		f, err := r.Flow().Normalized(coldFactor)
		r.Interval, r.MaxWait = f.Interval, f.MaxWait
		return r, err
	}
	h, err := r.Hotspot().Normalized()
	r.Interval, r.MaxWait, r.MaxValues = h.Interval, h.MaxWait, h.MaxValues
	return r, err
}

// coldFactor is unused, as no rule of a gateway warms up.
const coldFactor = 3

// Flow returns the flow rule that a rule without a param becomes.
func (r Rule) Flow() flow.Rule {
	behaviors := []flow.Behavior{hotspot.Reject: flow.Reject, hotspot.Throttle: flow.Throttle, hotspot.TokenBucket: flow.TokenBucket}
	f := flow.Rule{
		ID: r.ID, Resource: r.Target(), Threshold: r.Threshold, Interval: r.Interval, Burst: r.Burst, MaxWait: r.MaxWait, Mode: r.Mode,
		Behavior: flow.Behavior(255), Metric: flow.Metric(255),
	}
	if int(r.Behavior) < len(behaviors) {
		f.Behavior = behaviors[r.Behavior]
	}
	switch r.Metric {
	case hotspot.QPS:
		f.Metric = flow.QPS
	case hotspot.Concurrency:
		f.Metric = flow.Concurrency
	}
	return f
}

// Hotspot returns the hotspot rule that a rule with a param becomes.
func (r Rule) Hotspot() hotspot.Rule {
	return hotspot.Rule{
		ID: r.ID, Resource: r.Target(), Param: r.attachment(), Threshold: r.Threshold, Interval: r.Interval, Window: r.Window, Burst: r.Burst,
		Metric: r.Metric, Behavior: r.Behavior, MaxWait: r.MaxWait, MaxValues: r.MaxValues, Missing: r.Missing, Mode: r.Mode,
	}
}

// attachment returns the name under which the values are attached to calls.
func (r Rule) attachment() string {
	name := "gateway " + r.Param.String()
	if r.Name != "" {
		name += " " + r.Name
	}
	if r.Value != "" {
		name += " " + r.ValueMatch.String() + " " + r.Value
	}
	return name
}

// Info returns the rule's data for rule files.
func (r Rule) Info() spec.Info { return spec.Info{ID: r.ID, Resource: r.Target(), Mode: r.Mode} }

// Like identifies a rule by the fields that make it that rule, so that a rule with an edited
// threshold is still the same.
func (r Rule) Like() string {
	id := "gateway:route=" + r.Route
	if r.Group != "" {
		id = "gateway:group=" + r.Group
	}
	if r.Param != None {
		id += ":" + strings.TrimPrefix(r.attachment(), "gateway ")
	}
	return id
}
