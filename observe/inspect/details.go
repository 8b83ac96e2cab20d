package inspect

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// details are the rules' reports on single resources, sorted by resource, then in the order of the
// rules.
type details []core.ResourceDetails

func newDetails(rules []core.RuleStats) details {
	var d details
	for _, r := range rules {
		if r.Details != nil {
			d = append(d, r.Details.Resources()...)
		}
	}
	slices.SortStableFunc(d, func(a, b core.ResourceDetails) int { return cmp.Compare(a.About(), b.About()) })
	return d
}

// of returns the details of one resource.
func (d details) of(resource string) details {
	first, _ := slices.BinarySearchFunc(d, resource, func(r core.ResourceDetails, resource string) int {
		return strings.Compare(r.About(), resource)
	})
	end := first
	for end < len(d) && d[end].About() == resource {
		end++
	}
	return d[first:end:end]
}

// mark returns the text to show next to the calls of a resource with these details, or "" if there is
// none.
func (d details) mark() (mark string) {
	most := 0
	for _, r := range d {
		if text, urgency := r.Mark(); text != "" && (mark == "" || urgency > most) {
			mark, most = text, urgency
		}
	}
	return mark
}

// weight returns the approximate bytes of a value beyond its own size: slices, maps and texts, with
// their elements. Data behind pointers belongs to other code.
func weight(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Interface:
		if !v.IsNil() {
			bytes = int(v.Elem().Type().Size()) + weight(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			bytes += weight(field)
		}
	case reflect.Slice:
		bytes = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			bytes += weight(v.Index(i))
		}
	case reflect.Map:
		bytes = v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size())
		for item := v.MapRange(); item.Next(); {
			bytes += weight(item.Key()) + weight(item.Value())
		}
	}
	return bytes
}
