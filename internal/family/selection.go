package family

import (
	"slices"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
)

// selection finds the rules that apply to a name, apart from regular expressions, which apply to
// every name that they match. Of the others the most specific apply: rules for exactly that name;
// if there are none, rules with the pattern that spells out most of it; if there are none either,
// rules for any resource. No later step looks at the name.
//
// Only enforced rules exclude others: a rule in shadow mode changes no verdict, so it applies
// alongside the rules it would replace.
type selection struct {
	named    map[string][]candidate
	wild     pattern.Wildcards
	patterns [][]candidate // by their numbers in wild
	defaults []candidate
}

// candidate is a rule that may apply.
type candidate struct {
	rule    int
	exclude map[string]struct{}
}

func (s *selection) add(rule int, info spec.Info) {
	c := candidate{rule: rule}
	if len(info.Exclude) > 0 {
		c.exclude = make(map[string]struct{}, len(info.Exclude))
		for _, name := range info.Exclude {
			c.exclude[name] = struct{}{}
		}
	}
	switch {
	case info.Default():
		s.defaults = append(s.defaults, c)
	case info.Named():
		if s.named == nil {
			s.named = make(map[string][]candidate)
		}
		s.named[info.Resource] = append(s.named[info.Resource], c)
	default:
		n := s.wild.Add(info.Resource, info.Match == spec.MatchPath)
		if n == len(s.patterns) {
			s.patterns = append(s.patterns, nil)
		}
		s.patterns[n] = append(s.patterns[n], c)
	}
}

// choose returns the rules that apply to a name, given the rules whose expressions match it. Only
// rules for any resource depend on the latter.
func (s *selection) choose(name string, matched []int, enforced func(rule int) bool) (chosen []int) {
	chosen = matched
	add := func(level []candidate) (decided bool) {
		for _, c := range level {
			if _, excluded := c.exclude[name]; !excluded {
				chosen = append(chosen, c.rule)
				decided = decided || enforced(c.rule)
			}
		}
		return decided
	}
	if add(s.named[name]) {
		return chosen
	}
	for _, n := range s.wild.Match(name) {
		if add(s.patterns[n]) {
			return chosen
		}
	}
	if !slices.ContainsFunc(matched, enforced) {
		add(s.defaults)
	}
	return chosen
}

// about returns the rules for exactly that name.
func (s *selection) about(name string) (rules []int) {
	for _, c := range s.named[name] {
		rules = append(rules, c.rule)
	}
	return rules
}
