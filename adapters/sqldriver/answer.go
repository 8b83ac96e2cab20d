package sqldriver

import (
	"reflect"
	"slices"
	"strings"
)

// answers reports whether err is the database's own response: by its code, the statement is wrong
// or lost to another. The errors of the common drivers are recognized by their methods and fields,
// so that none of them is imported. Calls that succeed skip this.
func answers(err error) bool {
	answer, _ := answerIn(err)
	return answer
}

// answerIn looks for the first error in a tree that has a code; known reports whether there is one.
func answerIn(err error) (answer, known bool) {
	if err == nil {
		return false, false
	}
	if answer, known = answerOf(err); known {
		return answer, true
	}
	switch e := err.(type) { //nolint:errorlint // it unwraps by itself
	case interface{ Unwrap() error }:
		return answerIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if answer, known = answerIn(err); known {
				return answer, true
			}
		}
	}
	return false, false
}

// answerOf looks at one error by itself.
func answerOf(err error) (answer, known bool) {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false, false // its methods may panic
		}
		v = v.Elem()
	}
	switch e := err.(type) { //nolint:errorlint // it is called for each error in a tree
	case interface{ SQLState() string }: // pgx, lib/pq and others
		return stateAnswers(e.SQLState()), true
	case interface {
		SQLErrorNumber() int32
		SQLErrorClass() uint8
	}: // go-mssqldb
		return serverAnswers(e.SQLErrorNumber(), e.SQLErrorClass()), true
	}
	path, name := v.Type().PkgPath(), v.Type().Name()
	switch {
	case strings.Contains(path, "sqlite"): // mattn's, modernc's and ncruces'
		code, ok := codeOf(err, v)
		return ok && slices.Contains(sqliteAnswers, code&0xff), ok
	case strings.Contains(path, "godror"), name == "OracleError": // godror, go-ora
		code, ok := codeOf(err, v)
		return ok && oracleAnswers(code), ok
	}
	if number, state, ok := mysqlCode(v); ok {
		return mysqlAnswers(number, state), true
	}
	return false, false
}

// stateAnswers classifies a SQLSTATE. Classes are its first two characters.
func stateAnswers(state string) bool {
	if len(state) != 5 {
		return false
	}
	switch state[:2] {
	// Connections, resources, the operator, the system, an internal error of PostgreSQL; killed
	// statements, and errors that MySQL puts in no class.
	case "08", "53", "57", "58", "XX", "70", "HY":
		return false
	}
	return true
}

// codeOf returns the number that an error calls its code: from its method Code, or from the field
// Code or ErrCode.
func codeOf(err error, v reflect.Value) (int64, bool) {
	var code reflect.Value
	if m := reflect.ValueOf(err).MethodByName("Code"); m.IsValid() {
		if m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
			return 0, false
		}
		code = m.Call(nil)[0]
	} else if v.Kind() == reflect.Struct {
		if code = v.FieldByName("Code"); !code.IsValid() {
			code = v.FieldByName("ErrCode")
		}
	} else {
		code = v // mattn's ErrNo, ncruces' ErrorCode
	}
	switch {
	case !code.IsValid():
	case code.CanInt():
		return code.Int(), true
	case code.CanUint():
		return int64(code.Uint()), true
	}
	return 0, false
}

// sqliteAnswers are SQLite's primary result codes for wrong statements: ERROR, ABORT, TOOBIG,
// CONSTRAINT, MISMATCH, MISUSE, AUTH and RANGE. A locked database can't serve.
var sqliteAnswers = []int64{1, 4, 18, 19, 20, 21, 23, 25}

// mysqlCode returns the number and the SQLSTATE, "" if there is none, of a MySQLError of
// go-sql-driver/mysql or a MyError of go-mysql.
func mysqlCode(v reflect.Value) (number uint64, state string, ok bool) {
	if v.Kind() != reflect.Struct {
		return 0, "", false
	}
	field := func(name string, kind reflect.Kind) (reflect.Value, bool) {
		f := v.FieldByName(name)
		return f, f.IsValid() && f.Kind() == kind
	}
	if n, is := field("Number", reflect.Uint16); is {
		if s, is := field("SQLState", reflect.Array); is && s.Type().Elem().Kind() == reflect.Uint8 {
			var bytes []byte
			for i := range s.Len() {
				bytes = append(bytes, byte(s.Index(i).Uint()))
			}
			state = strings.Trim(string(bytes), "\x00")
		}
		return n.Uint(), state, true
	}
	n, is := field("Code", reflect.Uint16)
	s, has := field("State", reflect.String)
	if !is || !has {
		return 0, "", false
	}
	return n.Uint(), s.String(), true
}

// mysqlAnswers classifies an error from MySQL or MariaDB.
func mysqlAnswers(number uint64, state string) bool {
	switch number {
	case 1203, 1226: // a user has too many connections or queries, though the state blames the statement
		return false
	case 1193, 1210, 1364, 1366, 1411, 1526, 3572, 3819: // wrong values, checks and NOWAIT, though the state is of no class
		return true
	}
	if state != "" {
		return stateAnswers(state)
	}
	switch number { // for a driver without states
	case 1022, 1048, 1054, 1062, 1064, 1136, 1146, 1169, 1213, 1216, 1217, 1264, 1265, 1292, 1305, 1406, 1451, 1452, 1557, 1586, 1644, 1690, 4025:
		return true
	}
	return false
}

// serverAnswers classifies an error from SQL Server. Up to class 16 the user is at fault, except if
// a database can't be opened, or Azure has no room or moves it.
func serverAnswers(number int32, class uint8) bool {
	switch number {
	case 4060, 10928, 10929, 40143, 40197, 40501, 40540, 40613, 49918, 49919, 49920:
		return false
	}
	return class <= 16
}

// oracleAnswers classifies the number of an ORA error: constraints and values, lost locks and
// conflicts, parse errors, and errors raised by programs.
func oracleAnswers(code int64) bool {
	switch code {
	case 1, 54, 60, 1400, 1403, 1407, 1438, 1722, 2290, 2291, 2292, 6502, 8177, 12899:
		return true
	}
	return code >= 900 && code <= 999 || code >= 20000 && code <= 20999
}
