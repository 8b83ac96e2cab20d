// Package sqldriver guards what programs ask of a database by database/sql, whatever its driver.
// One line does it:
//
//	db, err := sqldriver.Open("pgx", dsn, "orders")
//
// in place of sql.Open("pgx", dsn); [Connector] is for sql.OpenDB, [Driver] for sql.Register.
//
// A statement that no rule refuses runs as an outbound call of the resource "sql orders", and so
// does the beginning of a transaction. A context gives it another name, as "sql orders.select":
//
//	db.QueryContext(sqldriver.Named(ctx, "orders.select"), "SELECT ...")
//
// The text of a statement is never a part of it. To make a connection is a call of "sql orders
// connect": where no server answers, that is what fails, and a breaker on it lets the others
// go at once.
//
// # Calls
//
// A query is in flight until its rows have been read or closed, as its connection is. What
// database/sql itself tries again on another connection, since the driver found one dead, is
// another call. Where the driver says driver.ErrSkip, the statement that is prepared and
// run in its place is the same call. Not guarded are: to prepare a statement, COMMIT and ROLLBACK,
// since a refusal would leave a transaction open, and Ping, by which probes look whether the
// database is there.
//
// # Refusals
//
// A refusal is the error of the method: errors.Is finds api.ErrBlocked and errors.As the
// *api.BlockError. It is no driver.ErrBadConn, so it is not tried again, and its connection goes
// back to the pool.
//
// # Failures
//
// Breakers count errors of the driver. They leave out what the program has canceled, and don't
// count a dead connection of the pool (driver.ErrBadConn), unless it is a new one; or an answer of
// the database: an error by which it says that the statement is wrong, such as a duplicate key, or
// lost to another. Answers are known by the SQLSTATE, all but the classes 08, 53, 57, 58, 70, HY
// and XX; by the numbers of MySQL, SQL Server and Oracle; and by the result codes of SQLite. That
// is so for the errors of pgx, lib/pq, go-sql-driver/mysql, go-mysql, mattn's, modernc's and
// ncruces' SQLite, go-mssqldb, godror and go-ora. Where a statement waited for a lock in vain (1205
// of MySQL, SQLITE_BUSY), the database could not serve it, which counts. [Failure] decides
// otherwise.
//
// # Limits
//
// A driver that can do no more than prepare statements (neither driver.ExecerContext nor
// driver.QueryerContext) has prepared one before that is refused, and where preparing fails, nothing
// counts. A driver is below the pool of connections. A call that waits for a rule holds a
// connection while it waits, and a limit of calls at once that is above DB.SetMaxOpenConns never
// refuses: guard above the DB, by api.Call, where that matters. Code that looks for the driver's own
// connection in sql.Conn.Raw finds it by [Unwrap].
//
// All interfaces of driver that the driver's types have, or lack, database/sql finds as it would
// without a guard. Everything here is as safe for concurrent use as what it wraps.
package sqldriver
