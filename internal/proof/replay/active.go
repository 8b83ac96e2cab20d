package replay

import (
	"regexp"
	"slices"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
)

// activeRule is a rule in effect.
type activeRule struct {
	flow.Rule
	pattern *regexp.Regexp // nil for a plain name
	system  bool           // it comes from the system rules
}

func activate(rules []flow.Rule) ([]activeRule, error) {
	active := make([]activeRule, len(rules))
	for i, r := range rules {
		active[i].Rule = r
		if r.Match == spec.MatchRegex {
			pattern, err := regexp.Compile(`^(?:` + r.Resource + `)$`)
			if err != nil {
				return nil, err
			}
			active[i].pattern = pattern
		}
	}
	return active, nil
}

func (r *activeRule) covers(resource string) bool {
	if r.pattern != nil {
		return r.pattern.MatchString(resource)
	}
	return r.Resource == resource
}

func (r *activeRule) queues() bool {
	return r.Behavior == flow.Throttle || r.Behavior == flow.WarmUpThrottle
}

func (r *activeRule) warms() bool {
	return r.Behavior == flow.WarmUp || r.Behavior == flow.WarmUpThrottle
}

// windowed reports whether the rule counts passes in a window.
func (r *activeRule) windowed() bool { return r.Metric == flow.QPS && !r.queues() }

// width is the length of a bucket of the rule's window.
func (r *activeRule) width() int64 { return int64(r.Interval) / int64(r.Buckets) }

// lends reports whether a prioritized call may borrow from the rule's window.
func (r *activeRule) lends() bool { return r.windowed() && !r.warms() && !r.system }

// oldest returns the start of the oldest bucket that the window counts at now.
func (r *activeRule) oldest(now int64) int64 {
	return floor(now, r.width()) + r.width() - int64(r.Interval)
}

// limit returns the threshold in whole units.
func (r *activeRule) limit() int64 { return int64(r.Threshold) }

// applied is a rule that applies to a call, and the node whose traffic it looks at.
type applied struct {
	*activeRule
	node NodeRef
}

// applying returns the rules with a limit that apply to a call, as they were declared.
func (p *player) applying(c *call) []applied {
	if !c.inbound {
		return p.flowRules(c)
	}
	return append(p.checks.limits(), p.flowRules(c)...)
}

// flowRules returns the flow rules that apply to a call.
func (p *player) flowRules(c *call) (rules []applied) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.covers(c.place.resource) || !p.selects(r, c) {
			continue
		}
		a := applied{activeRule: r}
		switch {
		case r.Relation == flow.Associated:
			a.node = NodeRef{Kind: "resource", Resource: r.Ref}
			if r.Threshold > 0 && r.Ref != c.place.resource && !p.book.exists(a.node) {
				continue
			}
		case r.Relation == flow.Chain:
			a.node = NodeRef{Kind: "call", Context: c.place.context, Resource: c.place.resource}
		case r.Origin == flow.OriginDefault:
			a.node = NodeRef{Kind: "resource", Resource: c.place.resource}
		default:
			a.node = NodeRef{Kind: "origin", Resource: c.place.resource, Origin: c.origin}
		}
		rules = append(rules, a)
	}
	return rules
}

func (p *player) selects(r *activeRule, c *call) bool {
	if r.Relation == flow.Chain && r.Ref != c.place.context {
		return false
	}
	switch r.Origin {
	case flow.OriginDefault:
		return true
	case flow.OriginOther:
		return c.origin != "" && !p.namesOrigin(c.place.resource, c.origin)
	}
	return r.Origin == c.origin
}

// namesOrigin reports whether a rule for the resource applies to that caller alone.
func (p *player) namesOrigin(resource, origin string) bool {
	return origin != flow.OriginDefault && origin != flow.OriginOther &&
		slices.ContainsFunc(p.rules, func(r activeRule) bool { return r.covers(resource) && r.Origin == origin })
}

// metered reports whether a QPS rule counts in a window of the node.
func (p *player) metered(ref NodeRef) bool {
	if ref.Kind == "inbound" {
		return slices.ContainsFunc(p.checks.limits(), func(x applied) bool { return x.windowed() })
	}
	return slices.ContainsFunc(p.rules, func(r activeRule) bool {
		if !r.windowed() {
			return false
		}
		switch {
		case r.Relation == flow.Associated:
			return ref.Kind == "resource" && r.Ref == ref.Resource
		case !r.covers(ref.Resource):
			return false
		case r.Relation == flow.Chain:
			return ref.Kind == "call" && r.Ref == ref.Context
		case r.Origin == flow.OriginDefault:
			return ref.Kind == "resource"
		case r.Origin == flow.OriginOther:
			return ref.Kind == "origin" && !p.namesOrigin(ref.Resource, ref.Origin)
		}
		return ref.Kind == "origin" && r.Origin == ref.Origin
	})
}

func (r *activeRule) perSecond() float64 { return r.Threshold / r.Interval.Seconds() }
