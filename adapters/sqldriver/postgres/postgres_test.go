// Package postgres_test tests adapters/sqldriver against a real PostgreSQL and pgx.
package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/sqldriver"
	"github.com/penstock-go/penstock/adapters/sqldriver/postgres/internal/server"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/patience"
	"github.com/penstock-go/penstock/isolation"
)

func TestMain(m *testing.M) { books.Main(m) }

// stage is a guarded database, and the same one without a guard.
type stage struct {
	guard    *api.Guard
	db, bare *sql.DB
}

func newStage(t *testing.T, dsn string) *stage {
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	books.Keep(t, g.Engine())
	s := &stage{guard: g}
	s.db, err = sqldriver.Open("pgx", dsn, "orders", sqldriver.On(g))
	require.NoError(t, err)
	s.bare, err = sql.Open("pgx", dsn)
	require.NoError(t, err)
	for _, db := range []*sql.DB{s.db, s.bare} {
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
	}
	return s
}

type figures struct{ pass, block, failed, inFlight int64 }

func (s *stage) figures(resource string) figures {
	n, ok := s.guard.Tree().Resource(resource)
	if !ok {
		return figures{}
	}
	return figures{n.Lifetime.Pass, n.Lifetime.Block, n.Lifetime.Exception, n.InFlight}
}

// since returns what the database's own resource has counted since then.
func (s *stage) since(before figures) figures {
	f := s.figures("sql orders")
	return figures{f.pass - before.pass, f.block - before.block, f.failed - before.failed, f.inFlight}
}

func TestPostgres(t *testing.T) {
	dsn := server.Start(t)
	s := newStage(t, dsn)
	_, err := s.bare.Exec("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10,2))")
	require.NoError(t, err)

	t.Run("statements and transactions", func(t *testing.T) {
		before := s.figures("sql orders")
		ctx := sqldriver.Named(t.Context(), "items.insert")
		_, err := s.db.ExecContext(ctx, "INSERT INTO items VALUES ($1, $2, $3)", 1, "one", "1.50")
		require.NoError(t, err)
		assert.Equal(t, figures{pass: 1}, s.figures("sql items.insert"))
		tx, err := s.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		require.NoError(t, err)
		prepared, err := tx.Prepare("UPDATE items SET name = $1 WHERE id = $2")
		require.NoError(t, err)
		for range 2 {
			_, err = prepared.Exec("eins", 1)
			require.NoError(t, err)
		}
		require.NoError(t, prepared.Close())
		require.NoError(t, tx.Commit())
		var name string
		require.NoError(t, s.db.QueryRow("SELECT name FROM items").Scan(&name))
		assert.Equal(t, "eins", name)
		assert.Equal(t, figures{pass: 4}, s.since(before))
		assert.Equal(t, figures{pass: 1}, s.figures("sql orders connect"))
	})

	t.Run("what pgx can, it can", func(t *testing.T) {
		describe := func(db *sql.DB) (text string) {
			rows, err := db.Query("SELECT id, name, price, $1::text[] AS tags, $2::int[] AS n FROM items", []string{"a", "b"}, []int32{1, 2})
			require.NoError(t, err)
			defer rows.Close()
			types, err := rows.ColumnTypes()
			require.NoError(t, err)
			for _, c := range types {
				length, hasLength := c.Length()
				precision, scale, has := c.DecimalSize()
				text += fmt.Sprintln(c.Name(), c.DatabaseTypeName(), c.ScanType(), length, hasLength, precision, scale, has)
			}
			for rows.Next() {
				var values [5]any
				require.NoError(t, rows.Scan(&values[0], &values[1], &values[2], &values[3], &values[4]))
				text += fmt.Sprintln(values[:]...)
			}
			require.NoError(t, rows.Err())
			return text
		}
		assert.Equal(t, describe(s.bare), describe(s.db))
		conn, err := s.db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.Raw(func(c any) error {
			assert.NoError(t, sqldriver.Unwrap(c).(*stdlib.Conn).Conn().Ping(t.Context()))
			return nil
		}))
		require.NoError(t, conn.Close())
	})

	t.Run("a refusal costs no connection", func(t *testing.T) {
		before, open := s.figures("sql orders"), s.db.Stats().OpenConnections
		require.NoError(t, s.guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "sql orders", Threshold: 0}}}))
		_, err := s.db.Exec("DELETE FROM items")
		require.ErrorIs(t, err, api.ErrBlocked)
		assert.Equal(t, figures{block: 1}, s.since(before))
		assert.Equal(t, open, s.db.Stats().OpenConnections)
		require.NoError(t, s.guard.LoadRules(api.RuleSet{}))
		require.NoError(t, s.db.Ping())
	})

	t.Run("rows hold their place", func(t *testing.T) {
		require.NoError(t, s.guard.LoadRules(api.RuleSet{Isolation: []isolation.Rule{{Resource: "sql orders", Threshold: 1}}}))
		rows, err := s.db.Query("SELECT generate_series(1, 3)")
		require.NoError(t, err)
		_, err = s.db.Exec("SELECT 1")
		require.ErrorIs(t, err, api.ErrBlocked)
		for rows.Next() {
			continue
		}
		require.NoError(t, rows.Err())
		_, err = s.db.Exec("SELECT 1")
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		require.NoError(t, s.guard.LoadRules(api.RuleSet{}))
	})

	t.Run("failures", func(t *testing.T) {
		for name, c := range map[string]struct {
			run    func() error
			failed int64
		}{
			"no rows":   {run: func() error { var n int; return s.db.QueryRow("SELECT id FROM items WHERE id = 7").Scan(&n) }},
			"duplicate": {run: func() error { _, err := s.db.Exec("INSERT INTO items VALUES (1, '', 0)"); return err }},
			"syntax":    {run: func() error { _, err := s.db.Exec("SELEKT"); return err }},
			"deadline": {failed: 1, run: func() error {
				ctx := late{t.Context(), make(chan struct{})}
				go func() {
					s.sleeping(t, "SELECT pg_sleep(60), 'too late'")
					close(ctx.done)
				}()
				_, err := s.db.ExecContext(ctx, "SELECT pg_sleep(60), 'too late'")
				return err
			}},
			"canceled": {run: func() error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					s.sleeping(t, "SELECT pg_sleep(60), 'to be canceled'")
					cancel()
				}()
				_, err := s.db.ExecContext(ctx, "SELECT pg_sleep(60), 'to be canceled'")
				return err
			}},
			"killed": {failed: 1, run: func() error {
				go func() {
					_, err := s.bare.Exec("SELECT pg_terminate_backend($1)", s.sleeping(t, "SELECT pg_sleep(60), 'to be killed'"))
					assert.NoError(t, err)
				}()
				_, err := s.db.Exec("SELECT pg_sleep(60), 'to be killed'")
				killed := new(pgconn.PgError)
				require.ErrorAs(t, err, &killed)
				return err
			}},
		} {
			require.NoError(t, s.db.Ping(), name) // opens a connection
			before := s.figures("sql orders")
			require.Error(t, c.run(), name)
			assert.Equal(t, figures{pass: 1, failed: c.failed}, s.since(before), name)
		}
	})

	t.Run("a connection that died in the pool", func(t *testing.T) {
		s.db.SetMaxOpenConns(1)
		var pid int
		require.NoError(t, s.db.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
		before := s.figures("sql orders")
		_, err := s.bare.Exec("SELECT pg_terminate_backend($1)", pid)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			var n int
			return s.bare.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid).Scan(&n) == nil && n == 0
		}, patience.Of(t), time.Millisecond)
		_, _ = s.db.Exec("SELECT 1") // pgx may notice only now that it is dead
		require.NoError(t, s.db.Ping())
		assert.LessOrEqual(t, s.since(before).failed, int64(1))
		_, err = s.db.Exec("SELECT 1")
		require.NoError(t, err)
	})

	t.Run("no server", func(t *testing.T) {
		gone, err := sqldriver.Open("pgx", strings.Replace(dsn, "host=", "host=/nowhere", 1), "gone", sqldriver.On(s.guard))
		require.NoError(t, err)
		defer gone.Close()
		_, err = gone.Exec("SELECT 1")
		require.Error(t, err)
		assert.Equal(t, figures{pass: 1, failed: 1}, s.figures("sql gone connect"))
		assert.Equal(t, figures{}, s.figures("sql gone"))
	})
}

// sleeping waits until a query sleeps, and returns its backend's pid.
func (s *stage) sleeping(t *testing.T, query string) (pid int) {
	assert.Eventually(t, func() bool {
		return s.bare.QueryRow("SELECT pid FROM pg_stat_activity WHERE query = $1 AND wait_event = 'PgSleep'", query).Scan(&pid) == nil
	}, patience.Of(t), time.Millisecond)
	return pid
}

// late is a context whose deadline expires when the test closes it.
type late struct {
	context.Context
	done chan struct{}
}

func (l late) Done() <-chan struct{} { return l.done }

func (l late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
