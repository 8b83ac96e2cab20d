package argument

import "reflect"

// Each calls f with the value of v, or of each element if v is a slice other than text.
func Each(v any, f func(Value)) {
	if !IsList(v) {
		f(Of(v))
		return
	}
	list := reflect.ValueOf(v)
	for i := range list.Len() {
		f(reflected(list.Index(i)))
	}
}

// IsList reports whether v is a slice other than text.
func IsList(v any) bool {
	switch v.(type) {
	case string, int, int64, bool, float64, Value, nil:
		return false
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && !isText(r)
}
