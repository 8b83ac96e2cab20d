package sqldriver_test

import "database/sql/driver"

// Each of these has the optional interfaces of the mask's bits, starting with the lowest.

func connEXPN(mask int, b *fakeConn) driver.Conn {
	switch mask {
	case 1:
		return struct {
			*fakeConn
			execs
		}{b, execs{b.fake}}
	case 2:
		return struct {
			*fakeConn
			execsContext
		}{b, execsContext{b.fake}}
	case 3:
		return struct {
			*fakeConn
			execs
			execsContext
		}{b, execs{b.fake}, execsContext{b.fake}}
	case 4:
		return struct {
			*fakeConn
			preparesContext
		}{b, preparesContext{b.fake}}
	case 5:
		return struct {
			*fakeConn
			execs
			preparesContext
		}{b, execs{b.fake}, preparesContext{b.fake}}
	case 6:
		return struct {
			*fakeConn
			execsContext
			preparesContext
		}{b, execsContext{b.fake}, preparesContext{b.fake}}
	case 7:
		return struct {
			*fakeConn
			execs
			execsContext
			preparesContext
		}{b, execs{b.fake}, execsContext{b.fake}, preparesContext{b.fake}}
	case 8:
		return struct {
			*fakeConn
			checks
		}{b, checks{b.fake}}
	case 9:
		return struct {
			*fakeConn
			execs
			checks
		}{b, execs{b.fake}, checks{b.fake}}
	case 10:
		return struct {
			*fakeConn
			execsContext
			checks
		}{b, execsContext{b.fake}, checks{b.fake}}
	case 11:
		return struct {
			*fakeConn
			execs
			execsContext
			checks
		}{b, execs{b.fake}, execsContext{b.fake}, checks{b.fake}}
	case 12:
		return struct {
			*fakeConn
			preparesContext
			checks
		}{b, preparesContext{b.fake}, checks{b.fake}}
	case 13:
		return struct {
			*fakeConn
			execs
			preparesContext
			checks
		}{b, execs{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	case 14:
		return struct {
			*fakeConn
			execsContext
			preparesContext
			checks
		}{b, execsContext{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	case 15:
		return struct {
			*fakeConn
			execs
			execsContext
			preparesContext
			checks
		}{b, execs{b.fake}, execsContext{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	}
	return b
}

func connQXPN(mask int, b *fakeConn) driver.Conn {
	switch mask {
	case 1:
		return struct {
			*fakeConn
			queries
		}{b, queries{b.fake}}
	case 2:
		return struct {
			*fakeConn
			queriesContext
		}{b, queriesContext{b.fake}}
	case 3:
		return struct {
			*fakeConn
			queries
			queriesContext
		}{b, queries{b.fake}, queriesContext{b.fake}}
	case 4:
		return struct {
			*fakeConn
			preparesContext
		}{b, preparesContext{b.fake}}
	case 5:
		return struct {
			*fakeConn
			queries
			preparesContext
		}{b, queries{b.fake}, preparesContext{b.fake}}
	case 6:
		return struct {
			*fakeConn
			queriesContext
			preparesContext
		}{b, queriesContext{b.fake}, preparesContext{b.fake}}
	case 7:
		return struct {
			*fakeConn
			queries
			queriesContext
			preparesContext
		}{b, queries{b.fake}, queriesContext{b.fake}, preparesContext{b.fake}}
	case 8:
		return struct {
			*fakeConn
			checks
		}{b, checks{b.fake}}
	case 9:
		return struct {
			*fakeConn
			queries
			checks
		}{b, queries{b.fake}, checks{b.fake}}
	case 10:
		return struct {
			*fakeConn
			queriesContext
			checks
		}{b, queriesContext{b.fake}, checks{b.fake}}
	case 11:
		return struct {
			*fakeConn
			queries
			queriesContext
			checks
		}{b, queries{b.fake}, queriesContext{b.fake}, checks{b.fake}}
	case 12:
		return struct {
			*fakeConn
			preparesContext
			checks
		}{b, preparesContext{b.fake}, checks{b.fake}}
	case 13:
		return struct {
			*fakeConn
			queries
			preparesContext
			checks
		}{b, queries{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	case 14:
		return struct {
			*fakeConn
			queriesContext
			preparesContext
			checks
		}{b, queriesContext{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	case 15:
		return struct {
			*fakeConn
			queries
			queriesContext
			preparesContext
			checks
		}{b, queries{b.fake}, queriesContext{b.fake}, preparesContext{b.fake}, checks{b.fake}}
	}
	return b
}

func connPBRV(mask int, b *fakeConn) driver.Conn {
	switch mask {
	case 1:
		return struct {
			*fakeConn
			pings
		}{b, pings{b.fake}}
	case 2:
		return struct {
			*fakeConn
			beginsTx
		}{b, beginsTx{b.fake}}
	case 3:
		return struct {
			*fakeConn
			pings
			beginsTx
		}{b, pings{b.fake}, beginsTx{b.fake}}
	case 4:
		return struct {
			*fakeConn
			resets
		}{b, resets{b.fake}}
	case 5:
		return struct {
			*fakeConn
			pings
			resets
		}{b, pings{b.fake}, resets{b.fake}}
	case 6:
		return struct {
			*fakeConn
			beginsTx
			resets
		}{b, beginsTx{b.fake}, resets{b.fake}}
	case 7:
		return struct {
			*fakeConn
			pings
			beginsTx
			resets
		}{b, pings{b.fake}, beginsTx{b.fake}, resets{b.fake}}
	case 8:
		return struct {
			*fakeConn
			validates
		}{b, validates{b.fake}}
	case 9:
		return struct {
			*fakeConn
			pings
			validates
		}{b, pings{b.fake}, validates{b.fake}}
	case 10:
		return struct {
			*fakeConn
			beginsTx
			validates
		}{b, beginsTx{b.fake}, validates{b.fake}}
	case 11:
		return struct {
			*fakeConn
			pings
			beginsTx
			validates
		}{b, pings{b.fake}, beginsTx{b.fake}, validates{b.fake}}
	case 12:
		return struct {
			*fakeConn
			resets
			validates
		}{b, resets{b.fake}, validates{b.fake}}
	case 13:
		return struct {
			*fakeConn
			pings
			resets
			validates
		}{b, pings{b.fake}, resets{b.fake}, validates{b.fake}}
	case 14:
		return struct {
			*fakeConn
			beginsTx
			resets
			validates
		}{b, beginsTx{b.fake}, resets{b.fake}, validates{b.fake}}
	case 15:
		return struct {
			*fakeConn
			pings
			beginsTx
			resets
			validates
		}{b, pings{b.fake}, beginsTx{b.fake}, resets{b.fake}, validates{b.fake}}
	}
	return b
}

func stmtEQNC(mask int, b *fakeStmt) driver.Stmt {
	switch mask {
	case 1:
		return struct {
			*fakeStmt
			stmtExecs
		}{b, stmtExecs{b.fake}}
	case 2:
		return struct {
			*fakeStmt
			stmtQueries
		}{b, stmtQueries{b.fake}}
	case 3:
		return struct {
			*fakeStmt
			stmtExecs
			stmtQueries
		}{b, stmtExecs{b.fake}, stmtQueries{b.fake}}
	case 4:
		return struct {
			*fakeStmt
			checks
		}{b, checks{b.fake}}
	case 5:
		return struct {
			*fakeStmt
			stmtExecs
			checks
		}{b, stmtExecs{b.fake}, checks{b.fake}}
	case 6:
		return struct {
			*fakeStmt
			stmtQueries
			checks
		}{b, stmtQueries{b.fake}, checks{b.fake}}
	case 7:
		return struct {
			*fakeStmt
			stmtExecs
			stmtQueries
			checks
		}{b, stmtExecs{b.fake}, stmtQueries{b.fake}, checks{b.fake}}
	case 8:
		return struct {
			*fakeStmt
			converts
		}{b, converts{b.fake}}
	case 9:
		return struct {
			*fakeStmt
			stmtExecs
			converts
		}{b, stmtExecs{b.fake}, converts{b.fake}}
	case 10:
		return struct {
			*fakeStmt
			stmtQueries
			converts
		}{b, stmtQueries{b.fake}, converts{b.fake}}
	case 11:
		return struct {
			*fakeStmt
			stmtExecs
			stmtQueries
			converts
		}{b, stmtExecs{b.fake}, stmtQueries{b.fake}, converts{b.fake}}
	case 12:
		return struct {
			*fakeStmt
			checks
			converts
		}{b, checks{b.fake}, converts{b.fake}}
	case 13:
		return struct {
			*fakeStmt
			stmtExecs
			checks
			converts
		}{b, stmtExecs{b.fake}, checks{b.fake}, converts{b.fake}}
	case 14:
		return struct {
			*fakeStmt
			stmtQueries
			checks
			converts
		}{b, stmtQueries{b.fake}, checks{b.fake}, converts{b.fake}}
	case 15:
		return struct {
			*fakeStmt
			stmtExecs
			stmtQueries
			checks
			converts
		}{b, stmtExecs{b.fake}, stmtQueries{b.fake}, checks{b.fake}, converts{b.fake}}
	}
	return b
}

func rowsNSTLP(mask int, b *fakeRows) driver.Rows {
	switch mask {
	case 1:
		return struct {
			*fakeRows
			nexts
		}{b, nexts{b.fake}}
	case 2:
		return struct {
			*fakeRows
			scans
		}{b, scans{b.fake}}
	case 3:
		return struct {
			*fakeRows
			nexts
			scans
		}{b, nexts{b.fake}, scans{b.fake}}
	case 4:
		return struct {
			*fakeRows
			names
		}{b, names{b.fake}}
	case 5:
		return struct {
			*fakeRows
			nexts
			names
		}{b, nexts{b.fake}, names{b.fake}}
	case 6:
		return struct {
			*fakeRows
			scans
			names
		}{b, scans{b.fake}, names{b.fake}}
	case 7:
		return struct {
			*fakeRows
			nexts
			scans
			names
		}{b, nexts{b.fake}, scans{b.fake}, names{b.fake}}
	case 8:
		return struct {
			*fakeRows
			lengths
		}{b, lengths{b.fake}}
	case 9:
		return struct {
			*fakeRows
			nexts
			lengths
		}{b, nexts{b.fake}, lengths{b.fake}}
	case 10:
		return struct {
			*fakeRows
			scans
			lengths
		}{b, scans{b.fake}, lengths{b.fake}}
	case 11:
		return struct {
			*fakeRows
			nexts
			scans
			lengths
		}{b, nexts{b.fake}, scans{b.fake}, lengths{b.fake}}
	case 12:
		return struct {
			*fakeRows
			names
			lengths
		}{b, names{b.fake}, lengths{b.fake}}
	case 13:
		return struct {
			*fakeRows
			nexts
			names
			lengths
		}{b, nexts{b.fake}, names{b.fake}, lengths{b.fake}}
	case 14:
		return struct {
			*fakeRows
			scans
			names
			lengths
		}{b, scans{b.fake}, names{b.fake}, lengths{b.fake}}
	case 15:
		return struct {
			*fakeRows
			nexts
			scans
			names
			lengths
		}{b, nexts{b.fake}, scans{b.fake}, names{b.fake}, lengths{b.fake}}
	case 16:
		return struct {
			*fakeRows
			precisions
		}{b, precisions{b.fake}}
	case 17:
		return struct {
			*fakeRows
			nexts
			precisions
		}{b, nexts{b.fake}, precisions{b.fake}}
	case 18:
		return struct {
			*fakeRows
			scans
			precisions
		}{b, scans{b.fake}, precisions{b.fake}}
	case 19:
		return struct {
			*fakeRows
			nexts
			scans
			precisions
		}{b, nexts{b.fake}, scans{b.fake}, precisions{b.fake}}
	case 20:
		return struct {
			*fakeRows
			names
			precisions
		}{b, names{b.fake}, precisions{b.fake}}
	case 21:
		return struct {
			*fakeRows
			nexts
			names
			precisions
		}{b, nexts{b.fake}, names{b.fake}, precisions{b.fake}}
	case 22:
		return struct {
			*fakeRows
			scans
			names
			precisions
		}{b, scans{b.fake}, names{b.fake}, precisions{b.fake}}
	case 23:
		return struct {
			*fakeRows
			nexts
			scans
			names
			precisions
		}{b, nexts{b.fake}, scans{b.fake}, names{b.fake}, precisions{b.fake}}
	case 24:
		return struct {
			*fakeRows
			lengths
			precisions
		}{b, lengths{b.fake}, precisions{b.fake}}
	case 25:
		return struct {
			*fakeRows
			nexts
			lengths
			precisions
		}{b, nexts{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 26:
		return struct {
			*fakeRows
			scans
			lengths
			precisions
		}{b, scans{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 27:
		return struct {
			*fakeRows
			nexts
			scans
			lengths
			precisions
		}{b, nexts{b.fake}, scans{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 28:
		return struct {
			*fakeRows
			names
			lengths
			precisions
		}{b, names{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 29:
		return struct {
			*fakeRows
			nexts
			names
			lengths
			precisions
		}{b, nexts{b.fake}, names{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 30:
		return struct {
			*fakeRows
			scans
			names
			lengths
			precisions
		}{b, scans{b.fake}, names{b.fake}, lengths{b.fake}, precisions{b.fake}}
	case 31:
		return struct {
			*fakeRows
			nexts
			scans
			names
			lengths
			precisions
		}{b, nexts{b.fake}, scans{b.fake}, names{b.fake}, lengths{b.fake}, precisions{b.fake}}
	}
	return b
}
