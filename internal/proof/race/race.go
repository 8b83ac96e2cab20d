// Package race reports to tests whether the race detector is on: then long tests do less, and
// allocations can't be counted.
package race

import "testing"

// OneGoroutine skips a long test under the race detector. Such a test uses one goroutine at a time.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("one thing happens at a time here, so nothing can race: the test runs without the race detector")
	}
}

// AllocatesNothing calls f, then calls it runs times more, and fails t if those calls allocated.
// Under the race detector f runs as often, but allocations don't count: a sync.Pool then drops some
// of its objects.
func AllocatesNothing(t testing.TB, runs int, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(runs, f); n != 0 && !Enabled {
		t.Errorf("%v allocations per call, want none", n)
	}
}
