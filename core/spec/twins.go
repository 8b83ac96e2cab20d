package spec

import "fmt"

// Twins finds rules that can't be in one list: two rules that declare the same ID, or are the same
// in every field. Rules whose IDs are made from their fields may share an ID, for example if only
// the threshold differs; they get numbers (see [UniqueIDs]). The zero value has no rules.
type Twins[R Rule] struct {
	rules    []R
	first    map[string]int // by ID: the first rule with it
	declared map[string]int // by ID: the rule that declares it
	same     map[string]int // by all their fields, for rules whose ID another rule has
}

// Add adds a rule with its defaults filled in; declares is true if the rule declares its ID. Add
// returns the index of an earlier twin of the rule, or -1 if there is none, and whether the two are
// the same.
func (t *Twins[R]) Add(rule R, declares bool) (earlier int, same bool) {
	if t.first == nil {
		t.first, t.declared, t.same = make(map[string]int), make(map[string]int), make(map[string]int)
	}
	i, id := len(t.rules), rule.Info().ID
	t.rules = append(t.rules, rule)
	if first, met := t.first[id]; !met {
		t.first[id] = i
	} else {
		// Only rules with equal IDs can be the same, so only few are converted to text.
		remember(t.same, asText(t.rules[first]), first)
		if j := remember(t.same, asText(rule), i); j != i {
			return j, true
		}
	}
	if declares {
		if j := remember(t.declared, id, i); j != i {
			return j, false
		}
	}
	return -1, false
}

// remember returns the number under key, storing i if there was none.
func remember(numbers map[string]int, key string, i int) int {
	if j, known := numbers[key]; known {
		return j
	}
	numbers[key] = i
	return i
}

// asText returns a rule as text, with strings quoted, so that [a b] differs from ["a b"].
func asText(rule any) string { return fmt.Sprintf("%#v", rule) }
