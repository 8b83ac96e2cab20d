package spec

import "github.com/penstock-go/penstock/core/pattern"

// CheckName returns a [FieldError] if no call can have this name.
func CheckName(field, name string) error {
	if len(name) > pattern.MaxName {
		return BadField(field, "has %d bytes, and a name has at most %d: no call can have it", len(name), pattern.MaxName)
	}
	return nil
}

// Names normalizes a list of names: an empty list has only one form.
func Names(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
