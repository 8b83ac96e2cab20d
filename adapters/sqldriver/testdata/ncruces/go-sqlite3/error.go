// Package sqlite3 defines an error like github.com/ncruces/go-sqlite3's.
package sqlite3

// errorCode is a primary result code.
type errorCode uint8

// Error is an error of SQLite.
type Error struct{ code uint64 }

// New returns an error with that result code.
func New(code uint64) error { return &Error{code} }

func (e *Error) Error() string { return "sqlite3: constraint failed" }

// Code is the primary result code.
func (e *Error) Code() errorCode { return errorCode(e.code) }
