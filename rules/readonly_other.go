//go:build !linux

package rules

// readOnly can't be known.
func readOnly(string) bool { return false }
