package sqldriver_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// fake is a driver that records its calls.
type fake struct {
	log        []string
	conn       func(*fakeConn) driver.Conn
	stmt       func(*fakeStmt) driver.Stmt
	rows       func(*fakeRows) driver.Rows
	skip       bool  // statements must be prepared
	err        error // of every run
	connecting error
	bad        int // that many statements find the connection dead
	reading    error
}

func newFake() *fake {
	return &fake{
		conn: func(c *fakeConn) driver.Conn { return connEXPN(15, c) },
		stmt: func(s *fakeStmt) driver.Stmt { return s },
		rows: func(r *fakeRows) driver.Rows { return r },
	}
}

func (f *fake) note(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

// run returns the result of a statement.
func (f *fake) run(canSkip bool) error {
	switch {
	case f.bad > 0:
		f.bad--
		return driver.ErrBadConn
	case canSkip && f.skip:
		return driver.ErrSkip
	}
	return f.err
}

func (f *fake) Connect(context.Context) (driver.Conn, error) {
	f.note("connect")
	if f.connecting != nil {
		return nil, f.connecting
	}
	return f.conn(&fakeConn{f}), nil
}

func (f *fake) Driver() driver.Driver { return fakeDriver{f} }

type fakeDriver struct{ of *fake }

func (d fakeDriver) Open(string) (driver.Conn, error) { return d.of.Connect(context.Background()) }

type fakeConn struct{ *fake }

func (c *fakeConn) Prepare(query string) (driver.Stmt, error) {
	c.note("prepare %s", query)
	if query == "no" {
		return nil, errDriver
	}
	return c.stmt(&fakeStmt{c.fake}), nil
}
func (c *fakeConn) Close() error { c.note("close"); return nil }
func (c *fakeConn) Begin() (driver.Tx, error) {
	c.note("begin")
	return fakeTx{c.fake}, c.run(false)
}

type fakeTx struct{ *fake }

func (t fakeTx) Commit() error   { t.note("commit"); return nil }
func (t fakeTx) Rollback() error { t.note("rollback"); return nil }

type (
	execs           struct{ *fake }
	execsContext    struct{ *fake }
	queries         struct{ *fake }
	queriesContext  struct{ *fake }
	preparesContext struct{ *fake }
	checks          struct{ *fake }
	pings           struct{ *fake }
	beginsTx        struct{ *fake }
	resets          struct{ *fake }
	validates       struct{ *fake }
)

func (f execs) Exec(query string, args []driver.Value) (driver.Result, error) {
	f.note("exec %s %v", query, args)
	return driver.RowsAffected(1), f.run(true)
}

func (f execsContext) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	f.note("exec context %s %v", query, args)
	if query == "panic" {
		panic("no")
	}
	return driver.RowsAffected(1), f.run(true)
}

func (f queries) Query(query string, args []driver.Value) (driver.Rows, error) {
	f.note("query %s %v", query, args)
	return f.rows(&fakeRows{fake: f.fake}), f.run(true)
}

func (f queriesContext) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	f.note("query context %s %v", query, args)
	return f.rows(&fakeRows{fake: f.fake}), f.run(true)
}

func (f preparesContext) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	f.note("prepare context %s", query)
	if query == "no" {
		return nil, errDriver
	}
	return f.stmt(&fakeStmt{f.fake}), nil
}

func (f checks) CheckNamedValue(v *driver.NamedValue) error {
	f.note("check %v", *v)
	switch v.Value {
	case odd{}:
		v.Value = "odd, checked"
		return nil
	case "gone":
		return driver.ErrRemoveArgument
	}
	return driver.ErrSkip
}

func (f pings) Ping(context.Context) error { f.note("ping"); return f.err }
func (f beginsTx) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	f.note("begin tx %v", o)
	return fakeTx(f), f.run(false)
}
func (f resets) ResetSession(context.Context) error { f.note("reset"); return nil }
func (f validates) IsValid() bool                   { f.note("valid"); return true }

// odd is a value that the default converter does not know.
type odd struct{}

type fakeStmt struct{ *fake }

func (s *fakeStmt) Close() error  { s.note("close stmt"); return nil }
func (s *fakeStmt) NumInput() int { return -1 }
func (s *fakeStmt) Exec(args []driver.Value) (driver.Result, error) {
	s.note("stmt exec %v", args)
	return driver.RowsAffected(1), s.run(false)
}
func (s *fakeStmt) Query(args []driver.Value) (driver.Rows, error) {
	s.note("stmt query %v", args)
	return s.rows(&fakeRows{fake: s.fake}), s.run(false)
}

type (
	stmtExecs   struct{ *fake }
	stmtQueries struct{ *fake }
	converts    struct{ *fake }
)

func (f stmtExecs) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	f.note("stmt exec context %v", args)
	return driver.RowsAffected(1), f.run(false)
}

func (f stmtQueries) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	f.note("stmt query context %v", args)
	return f.rows(&fakeRows{fake: f.fake}), f.run(false)
}

func (f converts) ColumnConverter(i int) driver.ValueConverter {
	f.note("convert %d", i)
	return converter{}
}

type converter struct{}

func (converter) ConvertValue(v any) (driver.Value, error) {
	if v == any(odd{}) {
		return "odd, converted", nil
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}

type fakeRows struct {
	*fake
	read int
}

func (r *fakeRows) Columns() []string { return []string{"a"} }
func (r *fakeRows) Close() error      { r.note("close rows"); return nil }
func (r *fakeRows) Next(to []driver.Value) error {
	r.read++
	switch {
	case r.read > 2 && r.reading != nil:
		return r.reading
	case r.read > 2:
		return io.EOF
	}
	to[0] = int64(r.read)
	return nil
}

type (
	nexts      struct{ *fake }
	scans      struct{ *fake }
	names      struct{ *fake }
	lengths    struct{ *fake }
	precisions struct{ *fake }
)

func (f nexts) HasNextResultSet() bool                                 { f.note("has next"); return true }
func (f nexts) NextResultSet() error                                   { f.note("next"); return io.EOF }
func (f scans) ColumnTypeScanType(int) reflect.Type                    { return reflect.TypeFor[int64]() }
func (f names) ColumnTypeDatabaseTypeName(int) string                  { return "BIGINT" }
func (f lengths) ColumnTypeLength(int) (int64, bool)                   { return 8, true }
func (f lengths) ColumnTypeNullable(int) (bool, bool)                  { return true, true }
func (f precisions) ColumnTypePrecisionScale(int) (int64, int64, bool) { return 3, 4, true }

var errDriver = errors.New("the driver can't")

// state is an error with a SQLSTATE.
type state string

func (s state) Error() string    { return string(s) }
func (s state) SQLState() string { return string(s) }
