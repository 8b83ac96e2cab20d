package sqldriver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/penstock-go/penstock/adapters/refusal"
	"github.com/penstock-go/penstock/api"
)

// Option changes how calls are guarded. If two options conflict, the later one wins.
type Option func(*guard)

// On uses g instead of the default guard.
func On(g *api.Guard) Option { return func(to *guard) { to.api = g } }

// WithOptions runs statements with the options that f returns for them: priority, arguments, units.
// At the beginning of a transaction the query is "" and args are nil.
func WithOptions(f func(ctx context.Context, query string, args []driver.NamedValue) []api.Option) Option {
	return func(to *guard) { to.options = f }
}

// Failure decides which errors breakers count as failures, instead of the rules in the package's
// documentation. It does not run for panics, refusals and driver.ErrBadConn.
func Failure(f func(error) bool) Option { return func(to *guard) { to.failure = f } }

// Open opens a database as sql.Open does, guarded. The name distinguishes its resource from those
// of other databases: "sql orders", or "sql" if it is empty.
func Open(driverName, dsn, name string, opts ...Option) (*sql.DB, error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	d := db.Driver()
	if err := db.Close(); err != nil { // db has no connection yet
		return nil, err
	}
	c, err := newGuard(name, opts).connector(d, dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Connector guards the connections of c, for sql.OpenDB. The name is as in [Open].
func Connector(c driver.Connector, name string, opts ...Option) driver.Connector {
	return &connector{c, newGuard(name, opts)}
}

// Driver guards all databases that d opens, for sql.Register. The name is as in [Open].
func Driver(d driver.Driver, name string, opts ...Option) driver.Driver {
	return &guardedDriver{d, newGuard(name, opts)}
}

// Named returns a context whose statements are calls of "sql" and that name, as "sql
// orders.select". Use few names: the caps in api.Config limit them.
func Named(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, "sql "+name)
}

type nameKey struct{}

// Unwrap returns the driver's own connection for one that sql.Conn.Raw shows; other values pass
// unchanged.
func Unwrap(conn any) any {
	if c, ok := conn.(interface{ unwrap() driver.Conn }); ok {
		return c.unwrap()
	}
	return conn
}

// guard holds the settings that options make.
type guard struct {
	api     *api.Guard // nil means the default guard
	name    string     // of the resource
	options func(ctx context.Context, query string, args []driver.NamedValue) []api.Option
	failure func(error) bool
}

func newGuard(name string, opts []Option) *guard {
	g := &guard{name: "sql"}
	if name != "" {
		g.name += " " + name
	}
	for _, o := range opts {
		o(g)
	}
	return g
}

func (g *guard) entry(ctx context.Context, name string, opts ...api.Option) (api.Admitted, error) {
	if g.api != nil {
		return g.api.Entry(ctx, name, opts...)
	}
	return api.Entry(ctx, name, opts...)
}

// nameIn returns the resource of statements with that context.
func (g *guard) nameIn(ctx context.Context) string {
	if name, ok := ctx.Value(nameKey{}).(string); ok {
		return name
	}
	return g.name
}

// failed returns the error for [api.Admitted.Fail], or nil if nothing failed. Fail itself checks
// whether the call was canceled.
func (g *guard) failed(ctx context.Context, err error, fresh bool) error {
	switch {
	case err == nil:
		return nil
	case refusal.Of(err).Reason != refusal.None:
		return api.ErrBlocked
	case errors.Is(err, driver.ErrBadConn): // database/sql retries on another connection, as a separate call
		if !fresh {
			return nil
		}
	case g.failure != nil:
		if !g.failure(err) {
			return nil
		}
		return api.Certain(err)
	case errors.Is(err, context.Canceled) && ctx.Err() == nil, errors.Is(err, sql.ErrNoRows), answers(err):
		return nil
	}
	return err
}

var errPanicked = api.Certain(errors.New("the driver panicked"))

// connector connects through a guard.
type connector struct {
	driver.Connector
	guard *guard
}

// Connect makes a connection, or returns a refusal.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	return c.guard.connect(ctx, func() (driver.Conn, error) { return c.Connector.Connect(ctx) })
}

// Close closes the driver's connector, if it can be closed.
func (c *connector) Close() error {
	if closer, ok := c.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

func (g *guard) connect(ctx context.Context, open func() (driver.Conn, error)) (driver.Conn, error) {
	e, err := g.entry(ctx, g.name+" connect")
	if err != nil {
		return nil, err
	}
	k := &call{Admitted: e, guard: g, ctx: ctx, fresh: true}
	defer k.panicked()
	c, err := open()
	k.end(err)
	if err != nil {
		return nil, err
	}
	return wrapConn(g, c), nil
}

func (g *guard) connector(d driver.Driver, dsn string) (driver.Connector, error) {
	if d, ok := d.(driver.DriverContext); ok {
		c, err := d.OpenConnector(dsn)
		if err != nil {
			return nil, err
		}
		return &connector{c, g}, nil
	}
	return &connector{dsnConnector{d, dsn}, g}, nil
}

// dsnConnector is a connector for a driver that has none.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (d dsnConnector) Connect(context.Context) (driver.Conn, error) { return d.driver.Open(d.dsn) }
func (d dsnConnector) Driver() driver.Driver                        { return d.driver }

// guardedDriver opens databases through a guard.
type guardedDriver struct {
	driver.Driver
	guard *guard
}

// Open is for callers that don't use OpenConnector.
func (d *guardedDriver) Open(dsn string) (driver.Conn, error) {
	return d.guard.connect(context.Background(), func() (driver.Conn, error) { return d.Driver.Open(dsn) })
}

// OpenConnector opens a database.
func (d *guardedDriver) OpenConnector(dsn string) (driver.Connector, error) {
	return d.guard.connector(d.Driver, dsn)
}
