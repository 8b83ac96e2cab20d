// Package replay replays decision traces recorded from the real Java Sentinel on our engine,
// through its public API and with a [clocks.Manual], and compares everything: every verdict, wait,
// figure, history, tree, and the clock. Every verdict is compared twice:
//
//   - with our promise (promise.go). Each rule has a twin here that is too simple to be
//     wrong, and computes its verdict from a list of all earlier calls: which call
//     each rule would refuse, and how long a call waits;
//
//   - with Java's. A trace fails at its first difference that the table does not
//     explain (table.go).
//
//     go test ./internal/proof/replay                        # the traces in testdata
//     PENSTOCK_GOLDEN=/some/folder go test -v ./internal/proof/replay
//
// PENSTOCK_GOLDEN lists further folders, separated by colons; every *.json and *.json.gz below is a
// trace.
//
// If a row of the table explains a decision that differs, the remainder of the trace can't be
// compared with Java's outcomes. It is replayed all the same: every verdict is compared with its
// promise, and every figure must count exactly the calls that were made (model.go).
//
// Traces with rules of families that don't exist yet are skipped. Those with system rules contain
// the machine's values; the engine reads them there.
package replay
