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
// alongside the rules it would replace. A rule that counts all its names together limits something
// else than a rule for one of them, so it applies to every name that it matches, and excludes none.
type selection struct {
	named map[string][]candidate
	wild
	together wild // rules that count all their names together
}

// wild finds the rules for many names.
type wild struct {
	wildcards pattern.Wildcards
	patterns  [][]candidate // by their numbers in wildcards
	defaults  []candidate
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
	case info.Together:
		s.together.add(c, info)
	case info.Named():
		if s.named == nil {
			s.named = make(map[string][]candidate)
		}
		s.named[info.Resource] = append(s.named[info.Resource], c)
	default:
		s.wild.add(c, info)
	}
}

func (w *wild) add(c candidate, info spec.Info) {
	if info.Default() {
		w.defaults = append(w.defaults, c)
		return
	}
	n := w.wildcards.Add(info.Resource, info.Match == spec.MatchPath)
	if n == len(w.patterns) {
		w.patterns = append(w.patterns, nil)
	}
	w.patterns[n] = append(w.patterns[n], c)
}

// choose returns the rules that apply to a name, given the rules whose expressions match it. Only
// rules for any resource depend on the latter.
func (s *selection) choose(name string, matched []int, excludes func(rule int) bool) (chosen []int) {
	chosen = matched
	add := func(level []candidate) (decided bool) {
		for _, c := range level {
			if _, excluded := c.exclude[name]; !excluded {
				chosen = append(chosen, c.rule)
				decided = decided || excludes(c.rule)
			}
		}
		return decided
	}
	for _, n := range s.together.wildcards.Match(name) {
		add(s.together.patterns[n])
	}
	add(s.together.defaults)
	if add(s.named[name]) {
		return chosen
	}
	for _, n := range s.wildcards.Match(name) {
		if add(s.patterns[n]) {
			return chosen
		}
	}
	if !slices.ContainsFunc(matched, excludes) {
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
