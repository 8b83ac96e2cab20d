package spec

import (
	"fmt"
	"slices"
	"strconv"
)

// UniqueIDs makes the rules' IDs distinct. normalized are the declared rules with their defaults
// filled in. An ID made from the fields gets a number if it is taken. [Twins] are an error.
func UniqueIDs[R Rule](declared, normalized []R) ([]R, error) {
	var twins Twins[R]
	rules := slices.Clone(normalized)
	taken := make(map[string]bool, len(rules))
	for i, rule := range normalized {
		id := declared[i].Info().ID
		switch j, same := twins.Add(rule, id != ""); {
		case same:
			return nil, fmt.Errorf("rules %d and %d are the same: remove one", j, i)
		case j >= 0:
			return nil, fmt.Errorf("rules %d and %d have the same id %q: give each its own", j, i, id)
		case id != "":
			taken[id] = true
		}
	}
	next := make(map[string]int) // the number to try next, by generated ID
	for i, rule := range rules {
		if declared[i].Info().ID != "" {
			continue
		}
		made := rule.Info().ID
		id, n := made, max(1, next[made])
		for ; ; n++ {
			if n > 1 {
				id = made + "#" + strconv.Itoa(n)
			}
			if !taken[id] {
				break
			}
		}
		next[made] = n + 1
		taken[id] = true
		rules[i] = WithID(rule, id)
	}
	return rules, nil
}
