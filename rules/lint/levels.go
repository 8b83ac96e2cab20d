package lint

import "github.com/penstock-go/penstock/core/spec"

// levels checks the floors of rules with a shed order.
func (l *linter) levels() {
	for i, r := range l.set.System {
		l.floors("system", i, r.Mode, r.Floors)
	}
	for i, r := range l.set.Adaptive {
		l.floors("adaptive", i, r.Mode, r.Floors)
	}
}

// floors finds floors that leave nothing of the limit to the highest level.
func (l *linter) floors(family string, i int, mode spec.Mode, f spec.Floors) {
	if sum := f.Sum(); mode != spec.Off && sum >= 100 {
		l.add("PN028", Warning, family, i, "floors", "the floors add up to %v of the limit, so the lower levels may hold all of it, and criticalPlus calls are refused: use less than 100%%, mostly a few percent", sum)
	}
}
