// Package sqlite3 has errors of the shape of github.com/mattn/go-sqlite3's.
package sqlite3

// ErrNo is a primary result code.
type ErrNo int

func (err ErrNo) Error() string { return Error{Code: err}.Error() }

// ErrNoExtended is an extended result code.
type ErrNoExtended int

// Error is an error of SQLite.
type Error struct {
	Code         ErrNo
	ExtendedCode ErrNoExtended
	err          string
}

func (err Error) Error() string { return err.err }
