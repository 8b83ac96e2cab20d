// Package books checks that nothing was lost: at the end of a test, that none of its engines has a
// call in flight, a reservation or a waiting caller; and at the end of the test binary, that no
// goroutine is left either.
package books

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/race"
	"github.com/penstock-go/penstock/node"
)

var (
	mu sync.Mutex
	// kept are the engines to check at the end. The pointers are weak: an engine that has been
	// collected can't hold anything, and a thousand engines would use up the tests' memory.
	kept []weak.Pointer[engine.Engine]
)

// Main runs the tests of a package, and fails if one of their engines or of the given engines still
// holds anything, or if a goroutine that they started has not ended.
//
//	func TestMain(m *testing.M) { books.Main(m) }
func Main(m *testing.M, engines ...*engine.Engine) {
	// Collections would take a fifth of the tests' time. The race detector keeps them.
	if os.Getenv("GOGC") == "" && !race.Enabled {
		debug.SetGCPercent(400)
	}
	before, begin := runtime.NumGoroutine(), time.Now()
	code := m.Run()
	if code == 0 {
		for _, problem := range append(unsettled(engines), stray(before, begin)...) {
			fmt.Println(problem)
			code = 1
		}
	}
	os.Exit(code)
}

// Keep makes the current test check an engine when it ends, and Main once more at the end. For a
// guard, that is guard.Engine().
func Keep(t testing.TB, e *engine.Engine) {
	t.Helper()
	mu.Lock()
	kept = append(kept, weak.Make(e))
	mu.Unlock()
	t.Cleanup(func() {
		if t.Failed() { // and perhaps stopped half-way
			return
		}
		for _, problem := range Unsettled(e) {
			t.Error(problem)
		}
	})
}

func unsettled(engines []*engine.Engine) (problems []string) {
	mu.Lock()
	defer mu.Unlock()
	for _, p := range kept {
		if e := p.Value(); e != nil {
			engines = append(engines, e)
		}
	}
	for _, e := range engines {
		problems = append(problems, Unsettled(e)...)
	}
	return problems
}

// stray names the goroutines beyond the number before the tests. Goroutines that are ending get
// time, up to go test's limit. Fuzzing itself leaves one.
func stray(before int, begin time.Time) (problems []string) {
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		return nil
	}
	return strayWithin(before, patience(begin))
}

// patience returns the time left of go test's limit for a binary that began then, ten minutes if
// there is no limit.
func patience(begin time.Time) time.Duration {
	if limit := flag.Lookup("test.timeout"); limit != nil {
		if d, ok := limit.Value.(flag.Getter).Get().(time.Duration); ok && d > 0 {
			return max(d-time.Since(begin), 0)
		}
	}
	return 10 * time.Minute
}

func strayWithin(before int, patience time.Duration) (problems []string) {
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
		problems = append(problems, fmt.Sprintf("%d goroutines at the start, %d at the end", before, n))
	}
	return problems
}

// Unsettled lists everything an engine still holds when no call should be running, which is nothing
// if the books balance. It reads the windows as of two days later, which empties them: don't use
// the engine afterwards.
func Unsettled(e *engine.Engine) (problems []string) {
	note := func(where, what string, n int64) {
		if n != 0 {
			problems = append(problems, fmt.Sprintf("%s: %s: %d, should be 0", where, what, n))
		}
	}
	note("engine", "calls that wait", e.Waiting())
	for _, f := range e.Rules().RuleStats() {
		if values, ok := f.Details.(hotspot.Stats); ok {
			note("rule "+f.ID, "units of values in flight", values.InFlight)
		}
	}
	// Borrowed units have become due by then; a bucket that never does shows up.
	later := e.Now() + int64(49*time.Hour)
	EachNode(e, func(name string, n *node.StatisticNode) {
		totals := n.Totals()
		note(name, "calls in flight", n.InFlight())
		note(name, "units in flight", n.UnitsInFlight())
		note(name, "calls that passed minus completed calls", totals.Entered-totals.Exited)
		note(name, "units that passed minus completed units", totals.Pass-totals.Complete)
		for _, g := range n.Meters().Semaphores() {
			n.Settle(g.Semaphore)
			note(name, "permits in use", g.InUse())
			note(name, "permits held", g.Held())
			note(name, "calls in the queue", g.Queued())
		}
		for _, w := range n.Meters().Windows() {
			note(name, "units borrowed", w.Waiting(later))
			note(name, "units in a window two days later", w.Sum(later))
		}
	})
	return problems
}

// EachNode calls f with every node that counts, and its place in the tree.
func EachNode(e *engine.Engine, f func(name string, n *node.StatisticNode)) {
	f(node.InboundName, &e.Tree().Inbound().StatisticNode)
	e.EachResource(func(r *engine.Resource) {
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
