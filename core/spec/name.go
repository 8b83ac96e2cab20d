package spec

import "github.com/penstock-go/penstock/core/pattern"

// CheckName returns why no call can have a name in a rule, as a [FieldError].
func CheckName(field, name string) error {
	if len(name) > pattern.MaxName {
		return BadField(field, "has %d bytes, and a name has at most %d: no call is ever made by that one", len(name), pattern.MaxName)
	}
	return nil
}

// Names returns a list of names as a normalized rule has it: an empty list has only one form.
func Names(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
