package spec

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// checkTexts returns a [FieldError] for the first field with text that is not UTF-8: no file could
// contain such a rule, and it could not be shown as JSON or YAML.
func checkTexts(rule reflect.Value) error {
	for i := range rule.NumField() {
		if bad, found := notUTF8(rule.Field(i)); found {
			field := rule.Type().Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			return BadField(key, "%.60q is not UTF-8 text", bad)
		}
	}
	return nil
}

// notUTF8 finds the first such text in a value, at any depth.
func notUTF8(v reflect.Value) (text string, found bool) {
	switch v.Kind() {
	case reflect.String:
		text = v.String()
		return text, !utf8.ValidString(text)
	case reflect.Slice:
		for i := 0; i < v.Len() && !found; i++ {
			text, found = notUTF8(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if text, found = notUTF8(key); found {
				break
			}
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && !found; i++ {
			text, found = notUTF8(v.Field(i))
		}
	}
	return text, found
}
