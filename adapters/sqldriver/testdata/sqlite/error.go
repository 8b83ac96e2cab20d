// Package sqlite defines an error like modernc.org/sqlite's.
package sqlite

// Error is an error of SQLite.
type Error struct{ code int }

// New returns an error with that result code.
func New(code int) error { return &Error{code} }

func (e *Error) Error() string { return "constraint failed" }

// Code is the extended result code.
func (e *Error) Code() int { return e.code }
