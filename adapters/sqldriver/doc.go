// Package sqldriver guards the use of a database through database/sql, with any driver. One line
// does it:
//
//	db, err := sqldriver.Open("pgx", dsn, "orders")
//
// instead of sql.Open("pgx", dsn); [Connector] is for sql.OpenDB, [Driver] for sql.Register.
//
// A statement that no rule refuses runs as an outbound call of the resource "sql orders", and so
// does the beginning of a transaction. A context can give it another name, as "sql orders.select":
//
//	db.QueryContext(sqldriver.Named(ctx, "orders.select"), "SELECT ...")
//
// The text of a statement is never part of the name. Opening a connection is a call of "sql orders
// connect": if no server responds, these calls fail, and a breaker on them lets the others fail at
// once.
//
// # Calls
//
// A query is in flight until its rows have been read or closed, as its connection is. When
// database/sql retries on another connection because the driver found one dead, that is another
// call. If the driver returns driver.ErrSkip, the statement that is prepared and run instead is the
// same call. Not guarded are preparing a statement; COMMIT and ROLLBACK, since a refusal would
// leave a transaction open; and Ping, which probes use to check the database.
//
// # Refusals
//
// A refusal is returned as the method's error: errors.Is finds api.ErrBlocked and errors.As the
// *api.BlockError. It is not a driver.ErrBadConn, so it is not retried, and its connection returns
// to the pool.
//
// # Failures
//
// Breakers count errors of the driver. They leave out statements that the program has canceled.
// They don't count a dead connection of the pool (driver.ErrBadConn), unless it is a new one, or an
// error that the database itself reports: one that blames the statement, such as a duplicate key,
// or a conflict with another statement. These are recognized by the SQLSTATE, except the classes
// 08, 53, 57, 58, 70, HY and XX; by the numbers of MySQL, SQL Server and Oracle; and by the result
// codes of SQLite. This covers the errors of pgx, lib/pq, go-sql-driver/mysql, go-mysql, mattn's,
// modernc's and ncruces' SQLite, go-mssqldb, godror and go-ora. A statement that waited for a lock
// in vain (1205 of MySQL, SQLITE_BUSY) could not be served, so it counts. [Failure] replaces these
// rules.
//
// # Limits
//
// With a driver that can only prepare statements (neither driver.ExecerContext nor
// driver.QueryerContext), a statement has been prepared before it is refused, and a failure to
// prepare does not count. A driver is below the pool of connections: a call that waits for a rule
// holds a connection while it waits, and a concurrency limit above DB.SetMaxOpenConns never
// refuses. Guard above the DB, with api.Call, where that matters. Code that needs the driver's own
// connection in sql.Conn.Raw gets it from [Unwrap].
//
// database/sql finds the same optional interfaces of package driver as without a guard. Everything
// here is as safe for concurrent use as the wrapped driver.
//
// The page docs/adapters/sqldriver.md has examples.
package sqldriver
