package lint

import (
	"reflect"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
)

// units finds rules whose unit differs from that of an earlier rule only in case or by a plural s.
func (l *linter) units() {
	type place struct {
		unit, family string
		rule         int
	}
	first := make(map[string]place)
	for f, list := range reflect.ValueOf(l.set).Fields() {
		family, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		for i := range list.Len() {
			field := list.Index(i).FieldByName("Unit")
			if !field.IsValid() {
				break // this family counts calls only
			}
			unit := field.String()
			if unit == "" || list.Index(i).Interface().(spec.Rule).Info().Mode == spec.Off {
				continue
			}
			key := strings.TrimSuffix(strings.ToLower(unit), "s")
			switch was, met := first[key]; {
			case !met:
				first[key] = place{unit, family, i}
			case was.unit != unit:
				l.add("PN026", Notice, family, i, "unit", "%q is not the unit %q of %s, so a cost in one doesn't count in the other: if both mean the same, write %q",
					unit, was.unit, l.at(was.family, was.rule), was.unit)
			}
		}
	}
}
