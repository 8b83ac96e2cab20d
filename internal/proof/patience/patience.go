// Package patience limits how long a test waits for events that must come: until go test's own
// limit (-timeout), minus the time to report the missing event. A shorter bound would fail on a
// busy machine. Test how soon something happens with testing/synctest or a manual clock.
package patience

import (
	"testing"
	"time"
)

// report is the time reserved for the message of a test that waited in vain.
const report = 5 * time.Second

// most is the wait without a limit, and in a bubble of testing/synctest, whose hours pass
// instantly.
const most = time.Hour

// Of returns the time left to wait, an hour at most.
func Of(t testing.TB) (left time.Duration) {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return most
	}
	defer func() {
		if recover() != nil { // Deadline panics in a bubble
			left = most
		}
	}()
	if end, ok := limited.Deadline(); ok {
		return min(max(time.Until(end)-report, 0), most)
	}
	return most
}

// Until polls until ok holds, and fails the test when its time runs out.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Of(t)); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: waited in vain until the test's limit", what)
		}
	}
}
