package lint

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// list is the common part of the rules of any family.
type list struct {
	family string
	*names
	says func(i int) string // everything in a rule except its ID
}

func listOf[R spec.Rule](family string, rules []R) list {
	return list{family, namesOf(rules), func(i int) string { return fmt.Sprintf("%#v", spec.WithID(rules[i], "")) }}
}

// read fills in the defaults of all rules. An invalid rule stays as it is, and is off.
func (l *linter) read() {
	coldFactor := l.opts.ColdFactor
	l.set.Authority = written(l.set.Authority, authority.Rule.Normalized, func(r *authority.Rule) *spec.Mode { return &r.Mode })
	l.set.System = written(l.set.System, system.Rule.Normalized, func(r *system.Rule) *spec.Mode { return &r.Mode })
	l.set.Hotspot = written(l.set.Hotspot, hotspot.Rule.Normalized, func(r *hotspot.Rule) *spec.Mode { return &r.Mode })
	l.set.Flow = written(l.set.Flow, func(r flow.Rule) (flow.Rule, error) { return r.Normalized(coldFactor) }, func(r *flow.Rule) *spec.Mode { return &r.Mode })
	l.set.Isolation = written(l.set.Isolation, isolation.Rule.Normalized, func(r *isolation.Rule) *spec.Mode { return &r.Mode })
	l.set.Adaptive = written(l.set.Adaptive, adaptive.Rule.Normalized, func(r *adaptive.Rule) *spec.Mode { return &r.Mode })
	l.set.Breaker = written(l.set.Breaker, breaker.Rule.Normalized, func(r *breaker.Rule) *spec.Mode { return &r.Mode })
	l.set.Upstream = written(l.set.Upstream, upstream.Rule.Normalized, func(r *upstream.Rule) *spec.Mode { return &r.Mode })
	l.set.Outlier = written(l.set.Outlier, outlier.Rule.Normalized, func(r *outlier.Rule) *spec.Mode { return &r.Mode })
	l.lists = []list{
		listOf("authority", l.set.Authority), listOf("hotspot", l.set.Hotspot), listOf("flow", l.set.Flow), listOf("isolation", l.set.Isolation),
		listOf("adaptive", l.set.Adaptive), listOf("breaker", l.set.Breaker), listOf("upstream", l.set.Upstream), listOf("outlier", l.set.Outlier),
	}
}

func written[R any](rules []R, normalized func(R) (R, error), mode func(*R) *spec.Mode) []R {
	all := slices.Clone(rules)
	for i, rule := range rules {
		if norm, err := normalized(rule); err == nil {
			all[i] = norm
		} else {
			*mode(&all[i]) = spec.Off
		}
	}
	return all
}

// list returns the list of a family.
func (l *linter) list(family string) list {
	return l.lists[slices.IndexFunc(l.lists, func(x list) bool { return x.family == family })]
}
