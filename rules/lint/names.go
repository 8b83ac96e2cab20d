package lint

import (
	"slices"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
)

// names finds the rules of a family that apply to a name by itself. It holds only enforced rules:
// others don't displace any.
type names struct {
	infos    []spec.Info // of all rules
	named    map[string][]int
	wild     pattern.Wildcards
	patterns [][]int // by their index in wild
	matches  []matcher
	rest     []int // for any resource
}

// matcher is the expression of a rule.
type matcher struct {
	rule        int
	expressions *pattern.Expressions
}

func namesOf[R spec.Rule](list []R) *names {
	n := &names{named: make(map[string][]int)}
	for i, rule := range list {
		info := rule.Info()
		n.infos = append(n.infos, info)
		switch {
		case info.Mode != spec.Enforce || info.Together: // which limits something else
		case info.Default():
			n.rest = append(n.rest, i)
		case info.Named():
			n.named[info.Resource] = append(n.named[info.Resource], i)
		case info.Match == spec.MatchRegex:
			if x := expression(info.Resource); x != nil {
				n.matches = append(n.matches, matcher{i, x})
			}
		default:
			number := n.wild.Add(info.Resource, info.Match == spec.MatchPath)
			if number == len(n.patterns) {
				n.patterns = append(n.patterns, nil)
			}
			n.patterns[number] = append(n.patterns[number], i)
		}
	}
	return n
}

// expression returns a regular expression, or nil if text is not a valid one.
func expression(text string) *pattern.Expressions {
	x, err := pattern.Compile(text, 1, false)
	if err != nil {
		return nil
	}
	return &pattern.Expressions{Revision: 1, List: []*pattern.Expression{x}}
}

func matches(x *pattern.Expressions, name string) bool {
	return len(x.Match(name, false, pattern.Matched{}).List) > 0
}

// about returns the rules that apply to a name.
func (n *names) about(name string) (rules []int) {
	for _, m := range n.matches {
		if matches(m.expressions, name) {
			rules = append(rules, m.rule)
		}
	}
	if named := n.named[name]; len(named) > 0 {
		return append(rules, named...)
	}
	for _, number := range n.wild.Match(name) {
		if near := n.without(n.patterns[number], name); len(near) > 0 {
			return append(rules, near...)
		}
	}
	if len(rules) > 0 { // an expression counts as a rule of the name's own
		return rules
	}
	return n.without(n.rest, name)
}

// without leaves out the rules that exclude the name.
func (n *names) without(rules []int, name string) (left []int) {
	for _, i := range rules {
		if !slices.Contains(n.infos[i].Exclude, name) {
			left = append(left, i)
		}
	}
	return left
}

// covers returns a function that reports whether a rule could apply to a name, if no more specific
// rule does.
func covers(info spec.Info) func(name string) bool {
	switch {
	case info.Default():
		return func(string) bool { return true }
	case info.Match == spec.MatchRegex:
		x := expression(info.Resource)
		return func(name string) bool { return x != nil && matches(x, name) }
	case info.Wild():
		var w pattern.Wildcards
		w.Add(info.Resource, info.Match == spec.MatchPath)
		return func(name string) bool { return len(w.Match(name)) > 0 }
	}
	return func(name string) bool { return name == info.Resource }
}

// alike holds rules of a family that name the same resources in the same way.
type alike struct {
	resource string
	match    spec.Match
	exclude  string
	together bool
}

// maxAlike is the number of rules with the same names that are compared with each other.
const maxAlike = 100

// groups returns the rules of a family that have the same names, without rules that are off. Groups
// are in the order of their first rules.
func groups(infos []spec.Info) (all [][]int) {
	number := make(map[alike]int, len(infos))
	for i, info := range infos {
		if info.Mode == spec.Off {
			continue
		}
		key := alike{info.Resource, info.Match, "", info.Together}
		for _, name := range info.Exclude {
			key.exclude += name + "\x00"
		}
		n, met := number[key]
		if !met {
			n = len(all)
			number[key] = n
			all = append(all, nil)
		}
		if len(all[n]) < maxAlike {
			all[n] = append(all[n], i)
		}
	}
	return slices.DeleteFunc(all, func(g []int) bool { return len(g) < 2 })
}
