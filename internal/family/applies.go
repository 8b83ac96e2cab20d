package family

import (
	"slices"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// which returns the rules that apply to a name and are not off, in order, given the expressions
// that match it.
func (t *Index[R, C]) which(name string, matched pattern.Matched) (which []int) {
	for _, e := range matched.List {
		which = append(which, t.expressions.Rules[e]...)
	}
	which = t.selection.choose(name, which, func(i int) bool { return excludes(t.rules[i].Info()) })
	slices.Sort(which)
	return which
}

// excludes reports whether rules that match a name less specifically don't apply to it.
func excludes(info spec.Info) bool { return info.Mode == spec.Enforce && !info.Together }

// For returns copies of the rules that apply to a name and are not off, in order.
func (t *Index[R, C]) For(name string) []R {
	var rules []R
	for _, i := range t.which(name, t.match(name, pattern.Matched{})) {
		rules = append(rules, t.rules[i])
	}
	return spec.Clone(rules)
}

// applies reports whether the state of rule i at a resource is to be kept there. which are the
// rules that apply to it or, while its matching expressions are not known yet, the rules that apply
// without them. A rule that is off keeps its state, since it is not looked up; and the overflow
// resource stands for any name, so every rule except rules for other names may come to apply there.
func (t *Index[R, C]) applies(i int, at *engine.Binding, which []int) bool {
	name := at.Resource.Name()
	info := t.rules[i].Info()
	switch {
	case info.Named():
		return info.Resource == name
	case info.Mode == spec.Off || name == node.OverflowName:
		return true
	case !at.Pending || info.Wild():
		_, applies := slices.BinarySearch(which, i)
		return applies
	case info.Default():
		return true // until another rule is known to apply to the name
	}
	return at.Matched.Has(t.patterns[i], name)
}
