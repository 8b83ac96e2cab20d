package sqldriver_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/sqldriver/testdata/godror"
	ncruces "github.com/penstock-go/penstock/adapters/sqldriver/testdata/ncruces/go-sqlite3"
	"github.com/penstock-go/penstock/adapters/sqldriver/testdata/sqlite"
	"github.com/penstock-go/penstock/adapters/sqldriver/testdata/sqlite3"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
)

// MySQLError is shaped like github.com/go-sql-driver/mysql's.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return e.Message }

func mysqlError(number uint16, state string) error {
	e := &MySQLError{Number: number}
	copy(e.SQLState[:], state)
	return e
}

// oldMySQLError is like MySQLError before it had a state.
type oldMySQLError struct {
	Number  uint16
	Message string
}

func (e *oldMySQLError) Error() string { return e.Message }

// MyError is shaped like github.com/go-mysql-org/go-mysql's.
type MyError struct {
	Code           uint16
	Message, State string
}

func (e *MyError) Error() string { return e.Message }

// mssqlError is shaped like github.com/microsoft/go-mssqldb's.
type mssqlError struct {
	Number int32
	Class  uint8
}

func (e mssqlError) Error() string         { return "mssql" }
func (e mssqlError) SQLErrorNumber() int32 { return e.Number }
func (e mssqlError) SQLErrorClass() uint8  { return e.Class }

// OracleError is shaped like github.com/sijms/go-ora's.
type OracleError struct {
	ErrCode int
	ErrMsg  string
}

func (e *OracleError) Error() string { return e.ErrMsg }

// coded is an unrelated error with a code.
type coded struct{ Code int }

func (e *coded) Error() string { return "coded" }

// known bug 236: an error that the database itself reports, such as a duplicate key, is not a
// failure, whichever driver returns it and however its error is wrapped; a database that can't
// serve is one.
func TestAnswers(t *testing.T) {
	var none *MySQLError
	for _, c := range []struct {
		name   string
		err    error
		answer bool
	}{
		{"mysql: duplicate", mysqlError(1062, "23000"), true},
		{"mysql: syntax", mysqlError(1064, "42000"), true},
		{"mysql: no table", mysqlError(1146, "42S02"), true},
		{"mysql: deadlock", mysqlError(1213, "40001"), true},
		{"mysql: signal", mysqlError(1644, "45000"), true},
		{"mysql: a field without a default", mysqlError(1364, "HY000"), true},
		{"mysql: check", mysqlError(3819, "HY000"), true},
		{"mysql: lock wait", mysqlError(1205, "HY000"), false},
		{"mysql: too many connections", mysqlError(1040, "08004"), false},
		{"mysql: too many of a user", mysqlError(1203, "42000"), false},
		{"mysql: too many queries of a user", mysqlError(1226, "42000"), false},
		{"mysql: read-only", mysqlError(1290, "HY000"), false},
		{"mysql: killed", mysqlError(1317, "70100"), false},
		{"mysql: took too long", mysqlError(3024, "HY000"), false},
		{"mysql: duplicate, without a state", mysqlError(1062, ""), true},
		{"mysql: duplicate, an old driver", &oldMySQLError{Number: 1062}, true},
		{"mysql: shutdown, an old driver", &oldMySQLError{Number: 1053}, false},
		{"go-mysql: duplicate", &MyError{Code: 1062, State: "23000"}, true},
		{"go-mysql: full", &MyError{Code: 1114, State: "HY000"}, false},
		{"mattn: unique", sqlite3.Error{Code: 19, ExtendedCode: 2067}, true},
		{"mattn: syntax", sqlite3.Error{Code: 1}, true},
		{"mattn: busy", sqlite3.Error{Code: 5}, false},
		{"mattn: full", sqlite3.Error{Code: 13}, false},
		{"mattn: a code alone", sqlite3.ErrNo(19), true},
		{"modernc: unique", sqlite.New(2067), true},
		{"modernc: no table", sqlite.New(1), true},
		{"modernc: locked", sqlite.New(5 | 1<<8), false},
		{"modernc: disk", sqlite.New(10 | 4<<8), false},
		{"ncruces: unique", ncruces.New(2067), true},
		{"ncruces: busy", ncruces.New(5), false},
		{"mssql: unique", mssqlError{2627, 14}, true},
		{"mssql: deadlock", mssqlError{1205, 13}, true},
		{"mssql: no room", mssqlError{701, 17}, false},
		{"mssql: Azure has no room", mssqlError{10928, 16}, false},
		{"godror: unique", godror.New(1), true},
		{"godror: no table", godror.New(942), true},
		{"godror: raised", godror.New(20001), true},
		{"godror: not available", godror.New(1034), false},
		{"go-ora: unique", &OracleError{ErrCode: 1}, true},
		{"go-ora: no listener", &OracleError{ErrCode: 12514}, false},
		{"postgres: unique", state("23505"), true},
		{"postgres: shutdown", state("57P01"), false},
		{"another error with a code", &coded{19}, false},
		{"another error", errDriver, false},
		{"nil of a type", none, false},
		{"joined", errors.Join(errDriver, mysqlError(1062, "23000")), true},
		{"joined, of which the first has a code", errors.Join(sqlite.New(5), sqlite.New(19)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			db, g := open(t, f, api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "sql orders", Threshold: 1, MinCalls: 1000}}})
			for _, err := range []error{c.err, fmt.Errorf("insert: %w", c.err)} {
				f.err = err
				_, got := db.Exec("insert")
				require.Equal(t, err, got)
			}
			want := int64(2)
			if c.answer {
				want = 0
			}
			assert.Equal(t, [2]int64{2, want}, [2]int64{g.Breakers()[0].Calls, g.Breakers()[0].Bad})
		})
	}
}

// A series of duplicate keys doesn't open a breaker.
func TestDuplicateKeysOpenNoBreaker(t *testing.T) {
	f := newFake()
	db, g := open(t, f, api.RuleSet{Breaker: []breaker.Rule{{ID: "b", Resource: "sql orders", Threshold: 0.5}}})
	f.err = mysqlError(1062, "23000")
	for range 20 {
		_, err := db.Exec("insert")
		require.ErrorIs(t, err, f.err)
	}
	assert.Equal(t, breaker.Closed, g.Breakers()[0].State)
}
