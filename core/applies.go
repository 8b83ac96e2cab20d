package core

import (
	"slices"

	"github.com/penstock-go/penstock/node"
)

// applies reports whether rule i is about a resource. The pattern of one that is
// off is not compiled, so it keeps what is there.
func (t *Table[R, C]) applies(i int, resource string) bool {
	switch info := t.rules[i].Info(); {
	case info.Default:
		return info.Mode == Off || resource == node.OverflowName || t.falls(i, resource, t.specific(resource))
	case !info.Regex:
		return info.Resource == resource
	}
	return t.patterns[i] == nil || t.matches(i, resource)
}

// matches is applies for a rule with a pattern. On the overflow resource every
// pattern may come to apply, since it stands for any name.
func (t *Table[R, C]) matches(i int, resource string) bool {
	return resource == node.OverflowName || t.patterns[i].MatchString(resource)
}

// which are the rules that apply to a resource and are not off, in order.
func (t *Table[R, C]) which(resource string) []int {
	specific := t.specific(resource)
	which := specific
	for _, i := range t.defaults {
		if t.falls(i, resource, specific) {
			which = append(which, i)
		}
	}
	slices.Sort(which)
	return which
}

// specific are those of them that are about the resource by its name.
func (t *Table[R, C]) specific(resource string) []int {
	which := slices.Clone(t.exact[resource])
	for _, i := range t.regex {
		if t.matches(i, resource) {
			which = append(which, i)
		}
	}
	return which
}

// falls reports whether the default rule i applies to a resource, given the rules
// about it.
func (t *Table[R, C]) falls(i int, resource string, specific []int) bool {
	enforced := func(i int) bool { return t.rules[i].Info().Mode == Enforce }
	return !slices.Contains(t.rules[i].Info().Except, resource) && !slices.ContainsFunc(specific, enforced)
}

// For returns the rules that apply to a resource, in order.
func (t *Table[R, C]) For(resource string) []R {
	var rules []R
	for _, i := range t.which(resource) {
		rules = append(rules, t.rules[i])
	}
	return rules
}
