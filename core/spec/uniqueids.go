package spec

import (
	"fmt"
	"slices"
	"strconv"
)

// UniqueIDs gives rules IDs that differ. normalized are the declared rules with
// their defaults filled in. An ID made from the fields gets a number if it is
// taken; two rules that declare the same ID, or are alike in every field and
// declare none, are an error.
func UniqueIDs[R Rule[R]](declared, normalized []R) ([]R, error) {
	rules := slices.Clone(normalized)
	taken := make(map[string]int, len(rules))
	for i, rule := range declared {
		id := rule.Info().ID
		if id == "" {
			continue
		}
		if j, ok := taken[id]; ok {
			return nil, fmt.Errorf("rules %d and %d have the same id %q: give each its own", j, i, id)
		}
		taken[id] = i
	}
	sharers := make(map[string]int, len(rules)) // how many rules have a made ID
	for i, rule := range rules {
		if declared[i].Info().ID == "" {
			sharers[rule.Info().ID]++
		}
	}
	next := make(map[string]int)    // the number to try next, by made ID
	alike := make(map[string][]int) // rules without an ID that look the same
	for i, rule := range rules {
		if declared[i].Info().ID != "" {
			continue
		}
		made := rule.Info().ID
		if sharers[made] > 1 { // those that are the same have the same
			text := fmt.Sprintf("%+v", rule) // so that few are compared with each other
			for _, j := range alike[text] {
				if normalized[j].Equal(normalized[i]) {
					return nil, fmt.Errorf("rules %d and %d are the same: remove one", j, i)
				}
			}
			alike[text] = append(alike[text], i)
		}

		id, n := made, max(1, next[made])
		for ; ; n++ {
			if n > 1 {
				id = made + "#" + strconv.Itoa(n)
			}
			if _, ok := taken[id]; !ok {
				break
			}
		}
		next[made] = n + 1
		taken[id] = i
		rules[i] = rule.WithID(id)
	}
	return rules, nil
}
