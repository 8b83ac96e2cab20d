// Package golden replays decision traces that were recorded from the real Java
// Sentinel on our engine, through its public API and with a [core.ManualClock],
// and compares everything: every verdict, wait, figure, history, tree, and the
// clock.
//
//	go test ./internal/golden                        # the traces in testdata
//	PENSTOCK_GOLDEN=/some/folder go test -v ./internal/golden
//
// PENSTOCK_GOLDEN lists further folders, separated by colons; every *.json and
// *.json.gz below is a trace.
//
// A trace fails at its first difference that the table does not explain
// (table.go). Where a row of the table explains a decision that differs, what
// follows in the trace can't be compared with Java's outcomes. It is replayed all
// the same, and held against what the runner knows by itself (book.go): that no
// limit is exceeded, that no refusal is without a reason (limits.go), and that
// every figure counts exactly the calls there were (model.go).
//
// Traces with rules of families that don't exist yet are skipped. Those with system
// rules say what the machine shows; the engine reads it there.
package golden
