package family

import "github.com/penstock-go/penstock/core/spec"

// ByMode parts the controllers of rules that are not off.
func ByMode[C any](all []*C, mode func(*C) spec.Mode) (hold, shadow []*C) {
	for _, c := range all {
		if mode(c) == spec.Shadow {
			shadow = append(shadow, c)
		} else {
			hold = append(hold, c)
		}
	}
	return hold, shadow
}
