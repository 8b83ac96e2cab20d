package spec

import (
	"fmt"
	"reflect"
)

// Normalize returns the rules of a family with defaults filled in and distinct IDs. The error names
// the first invalid rule, as in "flow[2].threshold: ...".
func Normalize[R Rule](family fmt.Stringer, rules []R, normalized func(R) (R, error)) ([]R, error) {
	if len(rules) == 0 {
		return nil, nil // an empty list has only one form
	}
	full := make([]R, len(rules))
	for i, rule := range rules {
		err := checkTexts(reflect.ValueOf(rule))
		if err == nil {
			full[i], err = normalized(rule)
		}
		if err != nil {
			return nil, fmt.Errorf("%v[%d].%w", family, i, err)
		}
	}
	unique, err := UniqueIDs(rules, full)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", family, err)
	}
	return unique, nil
}
