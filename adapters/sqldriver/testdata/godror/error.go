// Package godror defines an error like github.com/godror/godror's.
package godror

// OraErr is an error of Oracle.
type OraErr struct{ code int }

// New returns an error with that number.
func New(code int) error { return &OraErr{code} }

func (e *OraErr) Error() string { return "ORA" }

// Code is its number.
func (e *OraErr) Code() int { return e.code }
