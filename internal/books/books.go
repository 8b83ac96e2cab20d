// Package books checks at the end of a test binary that nothing was lost: no call
// in flight, no reservation, no waiting caller, no goroutine.
package books

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/node"
)

var (
	mu      sync.Mutex
	engines []*core.Engine
)

// Main runs the tests of a package, and fails if one of the engines that were
// kept still holds anything, or a goroutine that the tests started has not ended.
//
//	func TestMain(m *testing.M) { books.Main(m) }
func Main(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 {
		for _, problem := range append(unsettled(), stray(before)...) {
			fmt.Println(problem)
			code = 1
		}
	}
	os.Exit(code)
}

// Keep has Main look at an engine in the end, and the present test too when it
// ends.
func Keep(t testing.TB, e *core.Engine) {
	t.Helper()
	mu.Lock()
	engines = append(engines, e)
	mu.Unlock()
	t.Cleanup(func() {
		for _, problem := range Unsettled(e) {
			t.Error(problem)
		}
	})
}

func unsettled() (problems []string) {
	mu.Lock()
	defer mu.Unlock()
	for _, e := range engines {
		problems = append(problems, Unsettled(e)...)
	}
	return problems
}

// stray names the goroutines beyond the number that there was before the tests.
// Those that are about to end get time to.
func stray(before int) (problems []string) {
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
		problems = append(problems, fmt.Sprintf("%d goroutines at the start, %d at the end", before, n))
	}
	return problems
}

// Unsettled lists what an engine still holds although no call should be on its
// way: nothing if the books are balanced.
func Unsettled(e *core.Engine) (problems []string) {
	note := func(where, what string, n int64) {
		if n != 0 {
			problems = append(problems, fmt.Sprintf("%s: %s: %d, should be 0", where, what, n))
		}
	}
	note("engine", "calls that wait", e.Waiting())
	// What is borrowed has become due by then, and a bucket that never does shows.
	later := e.Clock().Now() + int64(49*time.Hour)
	EachNode(e, func(name string, n *node.StatisticNode) {
		totals := n.Totals()
		note(name, "calls in flight", n.InFlight())
		note(name, "units in flight", n.UnitsInFlight())
		note(name, "calls that passed less those that completed", totals.Entered-totals.Exited)
		note(name, "units that passed less those that completed", totals.Pass-totals.Complete)
		for _, g := range n.Gauges() {
			n.Settle(g.Gauge)
			note(name, "permits in use", g.InUse())
			note(name, "permits held", g.Held())
		}
		for _, w := range n.Windows() {
			note(name, "units borrowed", w.Waiting(later))
			note(name, "units in a window two days on", w.Sum(later))
		}
	})
	return problems
}

// EachNode calls f with every node that counts, and its place in the tree.
func EachNode(e *core.Engine, f func(name string, n *node.StatisticNode)) {
	f(node.InboundName, &e.Tree().Inbound().StatisticNode)
	e.EachResource(func(r *core.Resource) {
		f(r.Name(), &r.StatisticNode)
		for context, n := range r.Calls().All() {
			f(context+" > "+r.Name(), &n.StatisticNode)
		}
		for origin, n := range r.Origins().All() {
			f(r.Name()+" from "+origin, &n.StatisticNode)
		}
		if n := r.OverflowOrigin(); n != nil {
			f(r.Name()+" from "+n.Name(), &n.StatisticNode)
		}
	})
}
