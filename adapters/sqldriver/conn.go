package sqldriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/penstock-go/penstock/api"
)

// conn is a connection whose statements are guarded. It implements every optional interface that
// database/sql treats the same whether missing or doing nothing; wrapConn adds the others if the
// driver has them. As with any driver.Conn, its methods are not called concurrently.
type conn struct {
	driver.Conn
	guard *guard
	used  bool // some call has succeeded
	// postponed are calls that the driver would not run (driver.ErrSkip): database/sql prepares
	// them next. There is more than one if several goroutines share a transaction.
	postponed []*call
}

func (c *conn) unwrap() driver.Conn { return c.Conn }

// call is an admitted call.
type call struct {
	api.Admitted
	guard *guard
	conn  *conn // nil if there is none yet
	ctx   context.Context
	name  string
	query string
	fresh bool // no call on the connection has succeeded yet
	ended bool // or handed on
}

// enter enters a statement's resource.
func (c *conn) enter(ctx context.Context, query string, args []driver.NamedValue) (*call, error) {
	k := &call{guard: c.guard, conn: c, ctx: ctx, name: c.guard.nameIn(ctx), query: query, fresh: !c.used}
	var opts []api.Option
	if c.guard.options != nil {
		opts = c.guard.options(ctx, query, args)
	}
	var err error
	if k.Admitted, err = c.guard.entry(ctx, k.name, opts...); err != nil {
		return nil, err
	}
	return k, nil
}

// end ends the call.
func (k *call) end(err error) {
	k.ended = true
	if err == nil && k.conn != nil {
		k.conn.used = true
	}
	k.Fail(k.guard.failed(k.ctx, err, k.fresh))
	k.Exit()
}

// panicked is deferred: a call that has not ended by then has panicked, and the panic continues.
func (k *call) panicked() {
	if !k.ended {
		k.Fail(errPanicked)
		k.Exit()
	}
}

// postpone keeps a call that the driver would not run until it is prepared.
func (c *conn) postpone(k *call) {
	k.ended = true
	c.postponed = append(c.postponed, k)
}

// resume returns the postponed call that is prepared now, or nil if there is none.
func (c *conn) resume(ctx context.Context, query string) *call {
	name := c.guard.nameIn(ctx)
	i := slices.IndexFunc(c.postponed, func(k *call) bool { return k.query == query && k.name == name })
	if i < 0 {
		return nil
	}
	k := c.postponed[i]
	c.postponed = slices.Delete(c.postponed, i, i+1)
	return k
}

// Close closes the connection and ends postponed calls, since nothing can follow.
func (c *conn) Close() error {
	for _, k := range c.postponed {
		k.Exit()
	}
	c.postponed = nil
	return c.Conn.Close()
}

// Ping calls the driver's Ping, if it has one.
func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// CheckNamedValue calls the driver's CheckNamedValue, if it has one.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Prepare is for callers that don't use PrepareContext.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext prepares a statement, which is guarded when it runs.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	k := c.resume(ctx, query)
	if k != nil {
		k.ended = false
		defer k.panicked()
	}
	s, err := c.prepare(ctx, query)
	if err != nil {
		if k != nil {
			k.end(err)
		}
		return nil, err
	}
	if k != nil {
		k.ended = true // handed on to the statement
	}
	return wrapStmt(&stmt{Stmt: s, conn: c, query: query, first: k}), nil
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, query)
	}
	s, err := c.Conn.Prepare(query)
	if err == nil && ctx.Err() != nil {
		_ = s.Close()
		return nil, ctx.Err()
	}
	return s, err
}

// Begin is for callers that don't use BeginTx.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction, or returns a refusal. If the driver has no BeginTx, it does what
// database/sql would.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if _, ok := c.Conn.(driver.ConnBeginTx); !ok && opts.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	} else if !ok && opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	k, err := c.enter(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	defer k.panicked()
	tx, err := c.begin(ctx, opts)
	k.end(err)
	return tx, err
}

func (c *conn) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if b, ok := c.Conn.(driver.ConnBeginTx); ok {
		return b.BeginTx(ctx, opts)
	}
	tx, err := oldBeginner(c.Conn).Begin()
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback()
		return nil, ctx.Err()
	}
	return tx, err
}

// execer, queryer, resetter and validator are optional interfaces that a connection must have
// exactly if the driver's has them: with the first two, database/sql converts arguments before it
// prepares; with both of the others it keeps connections after a rollback.
type (
	execer    struct{ of *conn }
	queryer   struct{ of *conn }
	resetter  struct{ driver.SessionResetter }
	validator struct{ driver.Validator }
)

func (x execer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c := x.of
	d, modern := c.Conn.(driver.ExecerContext)
	values, err := positional(args, modern)
	if err != nil {
		return nil, err
	}
	k, err := c.enter(ctx, query, args)
	if err != nil {
		return nil, err
	}
	defer k.panicked()
	var result driver.Result
	if modern {
		result, err = d.ExecContext(ctx, query, args)
	} else if err = ctx.Err(); err == nil {
		result, err = c.Conn.(oldExecer).Exec(query, values)
	}
	if err == driver.ErrSkip { //nolint:errorlint // as database/sql does
		c.postpone(k)
	} else {
		k.end(err)
	}
	return result, err
}

func (x queryer) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c := x.of
	d, modern := c.Conn.(driver.QueryerContext)
	values, err := positional(args, modern)
	if err != nil {
		return nil, err
	}
	k, err := c.enter(ctx, query, args)
	if err != nil {
		return nil, err
	}
	defer k.panicked()
	var found driver.Rows
	if modern {
		found, err = d.QueryContext(ctx, query, args)
	} else if err = ctx.Err(); err == nil {
		found, err = c.Conn.(oldQueryer).Query(query, values)
	}
	if err == driver.ErrSkip { //nolint:errorlint // as database/sql does
		c.postpone(k)
		return nil, err
	}
	return k.rows(found, err)
}

// Interfaces from before contexts, which drivers may still have.
type (
	oldExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	oldQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
	oldBeginner interface{ Begin() (driver.Tx, error) }
	oldStmt     interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	}
	columnConverter interface {
		ColumnConverter(i int) driver.ValueConverter
	}
)

// positional returns the arguments for a driver without named arguments; for a modern driver names
// are fine.
func positional(args []driver.NamedValue, modern bool) ([]driver.Value, error) {
	if modern {
		return nil, nil
	}
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = a.Value
	}
	return values, nil
}

// wrapConn guards a connection and keeps its optional interfaces.
func wrapConn(g *guard, d driver.Conn) driver.Conn {
	c := &conn{Conn: d, guard: g}
	_, e := d.(driver.ExecerContext)
	_, e0 := d.(oldExecer)
	_, q := d.(driver.QueryerContext)
	_, q0 := d.(oldQueryer)
	ex, qu := execer{c}, queryer{c}
	resets, r := d.(driver.SessionResetter)
	validates, v := d.(driver.Validator)
	re, va := resetter{resets}, validator{validates}
	switch [4]bool{e || e0, q || q0, r, v} {
	case [4]bool{false, false, false, true}:
		return struct {
			*conn
			validator
		}{c, va}
	case [4]bool{false, false, true, false}:
		return struct {
			*conn
			resetter
		}{c, re}
	case [4]bool{false, false, true, true}:
		return struct {
			*conn
			resetter
			validator
		}{c, re, va}
	case [4]bool{false, true, false, false}:
		return struct {
			*conn
			queryer
		}{c, qu}
	case [4]bool{false, true, false, true}:
		return struct {
			*conn
			queryer
			validator
		}{c, qu, va}
	case [4]bool{false, true, true, false}:
		return struct {
			*conn
			queryer
			resetter
		}{c, qu, re}
	case [4]bool{false, true, true, true}:
		return struct {
			*conn
			queryer
			resetter
			validator
		}{c, qu, re, va}
	case [4]bool{true, false, false, false}:
		return struct {
			*conn
			execer
		}{c, ex}
	case [4]bool{true, false, false, true}:
		return struct {
			*conn
			execer
			validator
		}{c, ex, va}
	case [4]bool{true, false, true, false}:
		return struct {
			*conn
			execer
			resetter
		}{c, ex, re}
	case [4]bool{true, false, true, true}:
		return struct {
			*conn
			execer
			resetter
			validator
		}{c, ex, re, va}
	case [4]bool{true, true, false, false}:
		return struct {
			*conn
			execer
			queryer
		}{c, ex, qu}
	case [4]bool{true, true, false, true}:
		return struct {
			*conn
			execer
			queryer
			validator
		}{c, ex, qu, va}
	case [4]bool{true, true, true, false}:
		return struct {
			*conn
			execer
			queryer
			resetter
		}{c, ex, qu, re}
	case [4]bool{true, true, true, true}:
		return struct {
			*conn
			execer
			queryer
			resetter
			validator
		}{c, ex, qu, re, va}
	}
	return c
}
