package rules

import (
	"cmp"
	"fmt"

	"github.com/penstock-go/penstock/core/spec"
)

// Warnings returns warnings about rules whose effect is rarely intended: enforced rules whose
// threshold is 0, so that they refuse every call, or open at the first bad one. In a file the 0 must
// be written, but in Go a forgotten field has it too. Each warning names its rule by family, index
// and ID, or by its resource if it has no ID.
func (s Set) Warnings() []string {
	var warnings []string
	for _, f := range families {
		warnings = f.warn(&s, warnings)
	}
	return warnings
}

func (f rulesOf[R]) warn(s *Set, warnings []string) []string {
	if f.zero == nil {
		return warnings
	}
	for i, rule := range *f.in(s) {
		if info := rule.Info(); info.Mode == spec.Enforce && f.zero(rule) {
			warnings = append(warnings, fmt.Sprintf("%v[%d] %q: threshold is 0, so the rule %s",
				f, i, cmp.Or(info.ID, info.Resource), f.then))
		}
	}
	return warnings
}
