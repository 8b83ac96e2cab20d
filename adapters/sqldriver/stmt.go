package sqldriver

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
)

// stmt is a prepared statement whose runs are guarded. Its optional interfaces follow the same
// rules as conn's.
type stmt struct {
	driver.Stmt
	conn  *conn
	query string
	first *call // already admitted; nil means none
}

// wrapStmt adds a ColumnConverter if the driver has one: database/sql converts arguments
// differently without it.
func wrapStmt(s *stmt) driver.Stmt {
	if c, ok := s.Stmt.(columnConverter); ok {
		return struct {
			*stmt
			columnConverter
		}{s, c}
	}
	return s
}

// enter enters the resource, unless the statement holds it already.
func (s *stmt) enter(ctx context.Context, args []driver.NamedValue) (*call, error) {
	if k := s.first; k != nil {
		s.first, k.ended = nil, false
		return k, nil
	}
	return s.conn.enter(ctx, s.query, args)
}

// Close closes the statement. If it has not run, its arguments could not be converted.
func (s *stmt) Close() error {
	if s.first != nil {
		s.first.end(nil)
		s.first = nil
	}
	return s.Stmt.Close()
}

// CheckNamedValue calls the driver's statement's method, else that of its connection, if one has
// it.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// ExecContext runs the statement, or returns a refusal.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	d, modern := s.Stmt.(driver.StmtExecContext)
	values, err := positional(args, modern)
	if err != nil {
		return nil, err
	}
	k, err := s.enter(ctx, args)
	if err != nil {
		return nil, err
	}
	defer k.panicked()
	var result driver.Result
	if modern {
		result, err = d.ExecContext(ctx, args)
	} else if err = ctx.Err(); err == nil {
		result, err = oldStmt(s.Stmt).Exec(values)
	}
	k.end(err)
	return result, err
}

// QueryContext runs the statement, or returns a refusal.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	d, modern := s.Stmt.(driver.StmtQueryContext)
	values, err := positional(args, modern)
	if err != nil {
		return nil, err
	}
	k, err := s.enter(ctx, args)
	if err != nil {
		return nil, err
	}
	defer k.panicked()
	var found driver.Rows
	if modern {
		found, err = d.QueryContext(ctx, args)
	} else if err = ctx.Err(); err == nil {
		found, err = oldStmt(s.Stmt).Query(values)
	}
	return k.rows(found, err)
}

// rows are the result of a query: the call ends when they are closed, which database/sql does after
// the last row. If an optional interface is missing in the driver's rows, they behave as rows
// without it.
type rows struct {
	driver.Rows
	call *call
	err  error // an error other than the end
}

func (k *call) rows(found driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		k.end(err)
		return nil, err
	}
	k.conn.used, k.ended = true, true // the rows take over the call
	return &rows{Rows: found, call: k}, nil
}

// Close closes the rows and ends the call.
func (r *rows) Close() error {
	r.call.ended = false
	defer r.call.panicked()
	err := r.Rows.Close()
	if r.err == nil {
		r.err = err
	}
	r.call.end(r.err)
	return err
}

// Next reads a row.
func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	r.note(err)
	return err
}

// note keeps an error other than the end.
func (r *rows) note(err error) {
	if err != nil && err != io.EOF { //nolint:errorlint // as database/sql does
		r.err = err
	}
}

// HasNextResultSet calls the driver's method, if it has one.
func (r *rows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

// NextResultSet calls the driver's method, if it has one.
func (r *rows) NextResultSet() error {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	err := n.NextResultSet()
	r.note(err)
	return err
}

// ColumnTypeScanType calls the driver's method, if it has one.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if t, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName calls the driver's method, if it has one.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength calls the driver's method, if it has one.
func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if t, has := r.Rows.(driver.RowsColumnTypeLength); has {
		return t.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable calls the driver's method, if it has one.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t, has := r.Rows.(driver.RowsColumnTypeNullable); has {
		return t.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale calls the driver's method, if it has one.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t, has := r.Rows.(driver.RowsColumnTypePrecisionScale); has {
		return t.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}
