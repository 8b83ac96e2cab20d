package engine

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/shared"
)

// Leaks returns the calls that have not exited for at least [Config.LeakAfter], the oldest first,
// or nil if that is 0.
func (e *Engine) Leaks() []core.Leak {
	if e.leaks == nil {
		return nil
	}
	now := e.Now()
	var leaks []core.Leak
	e.leaks.each(func(c *watched) {
		if age := now - c.since; age >= e.leaks.after {
			leaks = append(leaks, core.Leak{Resource: c.resource, Age: time.Duration(age), Stack: c.stack()})
		}
	})
	slices.SortStableFunc(leaks, func(a, b core.Leak) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Resource, b.Resource))
	})
	return leaks
}

// Leaked returns the number of calls that have been reported as leaks, including calls that exited
// later.
func (e *Engine) Leaked() int64 {
	if e.leaks == nil {
		return 0
	}
	return e.leaks.leaked.Load()
}

const (
	maxWatched = 1 << 16 // at a time, some 20 MB at most
	maxFrames  = 32
)

// leakWatch remembers admitted calls until they exit, and reports each call that runs too long,
// once. It looks when the oldest is due, but at most eight times per after.
type leakWatch struct {
	engine *Engine
	after  int64
	lanes  []watchLane // by the lane of the call
	number shared.Int64
	missed shared.Int64 // calls beyond maxWatched since the last report
	leaked shared.Int64

	looking shared.Mutex // held during a look, and so while the log is written

	mu    shared.Mutex // guards the fields below it
	stop  func()       // the timer
	ended bool
}

type watchLane struct {
	mu    shared.Mutex // guards the fields below it
	calls map[*watched]struct{}
}

// watched is one admitted call. An invocation keeps it for its next call. Its fields, except
// reported, are written before it is in the lane.
type watched struct {
	resource string
	since    int64
	reported bool // under the lane's mu
	frames   int
	callers  [maxFrames]uintptr
}

func newLeakWatch(e *Engine, lanes int) *leakWatch {
	w := &leakWatch{engine: e, after: int64(e.config.LeakAfter), lanes: make([]watchLane, lanes)}
	for i := range w.lanes {
		w.lanes[i].calls = make(map[*watched]struct{})
	}
	w.arm(w.after)
	return w
}

// opened remembers a call that is about to run.
func (w *leakWatch) opened(inv *Invocation) {
	if w.number.Add(1) > maxWatched {
		w.number.Add(-1)
		w.missed.Add(1)
		return
	}
	if inv.leak == nil {
		inv.leak = new(watched)
	}
	c := inv.leak
	c.resource, c.since, c.reported = inv.resource.Name(), inv.now, false
	c.frames = runtime.Callers(3, c.callers[:])
	lane := &w.lanes[inv.lane]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	lane.calls[c] = struct{}{}
}

// closed forgets a call that exits.
func (w *leakWatch) closed(inv *Invocation) {
	lane := &w.lanes[inv.lane]
	lane.mu.Lock()
	defer lane.mu.Unlock()
	if _, ok := lane.calls[inv.leak]; ok {
		delete(lane.calls, inv.leak)
		w.number.Add(-1)
	}
}

func (w *leakWatch) each(f func(*watched)) {
	for i := range w.lanes {
		lane := &w.lanes[i]
		lane.mu.Lock()
		for c := range lane.calls {
			f(c)
		}
		lane.mu.Unlock()
	}
}

// arm schedules the next look after d nanoseconds.
func (w *leakWatch) arm(d int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.stop = clocks.Alarm(w.engine.clock, time.Duration(d), w.ring)
}

// close ends the reports, and waits for a report that is being written.
func (w *leakWatch) close() {
	w.mu.Lock()
	w.ended = true
	w.stop()
	w.mu.Unlock()
	w.looking.Lock()
	defer w.looking.Unlock()
}

func (w *leakWatch) ring() {
	next := w.after
	defer func() {
		_ = recover() // the clock panicked; there is nowhere to report it
		w.arm(next)
	}()
	next = w.look()
}

// leakSite is the subject of one log line.
type leakSite struct {
	resource string
	callers  [maxFrames]uintptr
}

// look reports leaks, a line for each resource and stack, and returns the time of the next look.
func (w *leakWatch) look() (next int64) {
	w.looking.Lock()
	defer w.looking.Unlock()
	now := w.engine.Now()
	next = w.after
	found := make(map[leakSite][]watched)
	w.each(func(c *watched) {
		if c.reported {
			return
		}
		if due := c.since + w.after - now; due > 0 {
			next = min(next, due)
			return
		}
		c.reported = true
		site := leakSite{resource: c.resource}
		copy(site.callers[:], c.callers[:c.frames])
		found[site] = append(found[site], *c)
	})
	for _, calls := range found {
		w.leaked.Add(int64(len(calls)))
		oldest := slices.MinFunc(calls, func(a, b watched) int { return cmp.Compare(a.since, b.since) })
		w.log("penstock: a call has not exited", "resource", logged(oldest.resource), "count", len(calls),
			"age", time.Duration(now-oldest.since), "stack", oldest.stack())
	}
	if n := w.missed.Swap(0); n > 0 {
		w.log("penstock: too many calls at once to watch them all for leaks", "watched", maxWatched, "beyond", n)
	}
	return max(next, w.after/8)
}

func (w *leakWatch) log(message string, args ...any) {
	defer func() { _ = recover() }() // if the logger panics, there is nowhere to report it
	w.engine.Logger().Warn(message, args...)
}

// stack formats the frames of the caller, without those of this module.
func (c *watched) stack() string {
	engine := reflect.TypeFor[Engine]().PkgPath()
	api := path.Join(path.Dir(path.Dir(engine)), "api")
	ours := func(function string) bool {
		return strings.HasPrefix(function, engine+".") || strings.HasPrefix(function, api+".")
	}
	var b strings.Builder
	frames := runtime.CallersFrames(c.callers[:c.frames])
	for more := c.frames > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if b.Len() == 0 && ours(f.Function) || f.Function == "runtime.goexit" {
			continue
		}
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}
