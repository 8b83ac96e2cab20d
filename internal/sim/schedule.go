//go:build sim

package sim

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// maxSteps is when a schedule is given up: its callers wait for each other.
const maxSteps = 200_000

// Schedule is one interleaving of one machine.
type Schedule struct {
	// Rand is for the scenario: how many callers, which amounts, what limit. It is
	// not for the callers while they run.
	Rand *rand.Rand

	chooser chooser
	pool    *pool
	tasks   []*task
	ready   []*task // who can go on
	waiting []*task // for a condition
	locks   []any   // that are taken
	running *task   // nil while no caller runs
	next    *task

	now     int64
	checks  []func()
	steps   int
	failure string
	stuck   bool

	tracing bool
	trace   []string
}

// task is one caller.
type task struct {
	schedule *Schedule
	number   int
	name     string
	run      func()
	worker   *worker
	pending  access      // what it does next
	blocked  any         // the lock that it waits for
	until    func() bool // the condition that it waits for
	wake     int64       // when the clock ends its sleep, 0 if it doesn't sleep
	done     bool
}

// Go adds a caller. It starts when the schedule does.
func (s *Schedule) Go(run func()) { s.Named(fmt.Sprint("caller ", len(s.tasks)+1), run) }

// Named is Go for a caller with a name, which traces show.
func (s *Schedule) Named(name string, run func()) {
	s.tasks = append(s.tasks, &task{schedule: s, number: len(s.tasks), name: name, run: run})
}

// Check adds what must hold when all callers have returned. What was added last is
// checked first.
func (s *Schedule) Check(check func()) { s.checks = append(s.checks, check) }

// Failf says that something doesn't hold. The first time counts.
func (s *Schedule) Failf(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
	}
}

// play runs the schedule to its end.
func (s *Schedule) play() {
	shared.Schedule = s
	defer func() { shared.Schedule = nil }()
	for i, t := range s.tasks {
		t.worker = s.pool.worker(i)
		t.worker.task = t
		s.ready = append(s.ready, t)
	}
	for t := s.choose(nil); t != nil; {
		s.running, s.next = t, nil
		t.worker.resume()
		s.running = nil
		if t.done {
			s.drop(t)
			s.next = s.choose(nil)
		}
		if s.stuck {
			return
		}
		t = s.next
	}
	if s.failure == "" && !s.chooser.played() {
		for _, check := range slices.Backward(s.checks) {
			check()
		}
	}
}

// access is what a caller is about to do.
type access struct {
	object any
	write  bool
	lock   bool // takes the lock that object is
	alone  bool // may depend on anything
}

// clash reports whether it matters which of two accesses comes first.
func (a access) clash(b access) bool {
	return a.alone || b.alone || a.object == b.object && a.object != nil && (a.write || b.write)
}

// Access lets the chooser decide who goes on. It implements [shared.Scheduler].
func (s *Schedule) Access(object any, write bool) {
	if s.running == nil {
		return // setting up, or checking
	}
	s.step("")
	s.running.pending = access{object: object, write: write}
	s.switchTo(s.choose(s.running))
}

// Lock lets the chooser decide who goes on among those who can: the caller can
// while nobody has the lock. It implements [shared.Scheduler].
func (s *Schedule) Lock(mutex any) {
	me := s.running
	if me == nil {
		return
	}
	s.step("")
	me.pending = access{object: mutex, write: true, lock: true}
	if s.locked(mutex) {
		me.blocked = mutex
		s.drop(me)
		s.switchTo(s.choose(nil))
	} else {
		s.switchTo(s.choose(me))
	}
	s.Took(mutex)
}

// Took notes that a lock is taken. Who is about to take it can't go on.
func (s *Schedule) Took(mutex any) {
	if s.running == nil {
		return
	}
	s.locks = append(s.locks, mutex)
	for _, t := range s.tasks {
		if t != s.running && !t.done && t.blocked == nil && t.pending.lock && t.pending.object == mutex {
			t.blocked = mutex
			s.drop(t)
		}
	}
}

// Unlocked notes that a lock is free.
func (s *Schedule) Unlocked(mutex any) {
	i := slices.Index(s.locks, mutex)
	if i < 0 {
		return
	}
	s.locks = slices.Delete(s.locks, i, i+1)
	for _, t := range s.tasks {
		if t.blocked == mutex {
			t.blocked = nil
			s.ready = append(s.ready, t)
		}
	}
}

func (s *Schedule) locked(mutex any) bool { return slices.Contains(s.locks, mutex) }

// Await parks the caller until a condition holds. The condition must not change
// anything.
func (s *Schedule) Await(until func() bool) { s.await(until, 0) }

func (s *Schedule) await(until func() bool, wake int64) {
	t := s.running
	s.step("waits")
	t.until, t.wake, t.pending = until, wake, access{alone: true}
	s.drop(t)
	s.waiting = append(s.waiting, t)
	s.switchTo(s.choose(nil))
}

// switchTo lets another caller go on, and returns when it is this one's turn.
func (s *Schedule) switchTo(t *task) {
	me := s.running
	if t == me {
		return
	}
	s.next = t
	me.worker.suspend()
}

// choose returns who goes on, nil if all have returned. me is the one that runs and
// could go on, or nil.
func (s *Schedule) choose(me *task) *task {
	if len(s.waiting) > 0 {
		s.release()
	}
	switch {
	case s.steps > maxSteps:
		s.stuck = true
		s.Failf("no end after %d steps: the callers wait for each other", maxSteps)
		return nil
	case len(s.ready) == 0:
		for _, t := range s.tasks {
			if !t.done {
				s.stuck = true
				s.Failf("deadlock: %s can't go on, and nobody else can either", t.name)
			}
		}
		return nil
	}
	return s.chooser.choose(s, me)
}

// release makes those ready whose condition holds. If nobody could go on
// otherwise, it lets the clock come to the next wake-up.
func (s *Schedule) release() {
	me := s.running
	s.running = nil // conditions are not part of the schedule
	defer func() { s.running = me }()
	for {
		keep := s.waiting[:0]
		for _, t := range s.waiting {
			if t.until() {
				t.until, t.wake = nil, 0
				s.ready = append(s.ready, t)
			} else {
				keep = append(keep, t)
			}
		}
		s.waiting = keep
		var first int64
		for _, t := range s.waiting {
			if t.wake != 0 && (first == 0 || t.wake < first) {
				first = t.wake
			}
		}
		if len(s.ready) > 0 || first == 0 {
			return
		}
		s.now = max(s.now, first)
	}
}

func (s *Schedule) drop(t *task) {
	if i := slices.Index(s.ready, t); i >= 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// step counts an access, and writes it down when the schedule is traced.
func (s *Schedule) step(what string) {
	s.steps++
	if !s.tracing {
		return
	}
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	access := ""
	for {
		f, more := frames.Next()
		_, function, _ := strings.Cut(f.Function, "penstock-go/penstock/")
		switch {
		case strings.HasPrefix(function, "internal/sim"):
		case strings.HasPrefix(function, "internal/shared"):
			access = strings.TrimPrefix(function, "internal/shared.")
		default:
			if what == "" {
				what = access
			}
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			s.trace = append(s.trace, fmt.Sprintf("%5d  %-10s %-22s %s:%d %s", s.steps, s.running.name, what, file, f.Line, function))
			return
		}
		if !more {
			return
		}
	}
}

// Note writes a line into the trace.
func (s *Schedule) Note(format string, args ...any) {
	if s.tracing && s.running != nil {
		s.trace = append(s.trace, fmt.Sprintf("       %-10s %s", s.running.name, fmt.Sprintf(format, args...)))
	}
}

// Clock is the schedule's time. It stands still but for Advance, and where nobody
// can go on before a sleeper wakes. It is a core.Clock.
type Clock struct{ s *Schedule }

// Clock is the schedule's clock.
func (s *Schedule) Clock() Clock { return Clock{s} }

// Now is the time in nanoseconds. The caller may be held up before it.
func (c Clock) Now() int64 {
	c.s.Access(c.s, false)
	return c.s.now
}

// Advance moves the time forward.
func (c Clock) Advance(d time.Duration) {
	c.s.Access(c.s, true)
	c.s.now += int64(d)
}

// Set sets the time.
func (c Clock) Set(now int64) { c.s.now = now }

// Sleep returns when the clock has come d further, or the context has ended.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	wake := c.s.now + int64(d)
	c.s.await(func() bool { return c.s.now >= wake || ctx.Err() != nil }, wake)
	if c.s.now >= wake {
		return nil
	}
	return ctx.Err()
}

// A pool keeps the coroutines of one test, since starting one costs more than
// running a schedule.
type pool struct{ workers []*worker }

func (p *pool) worker(i int) *worker {
	for len(p.workers) <= i {
		p.workers = append(p.workers, newWorker())
	}
	return p.workers[i]
}

// stop ends the coroutines; none is in the middle of a task.
func (p *pool) stop() {
	for _, w := range p.workers {
		w.stop()
	}
}

// worker is a coroutine that runs one task after another.
type worker struct {
	task *task
	next func() (struct{}, bool)
	stop func()
	give func(struct{}) bool
}

func newWorker() *worker {
	w := new(worker)
	w.next, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.give = yield
		for {
			w.task.call()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return w
}

// call runs the task. A panic of the code under test is a failure of the schedule.
func (t *task) call() {
	defer func() {
		if r := recover(); r != nil {
			t.schedule.Failf("%s panicked: %v\n%s", t.name, r, debug.Stack())
		}
		t.done = true
	}()
	t.run()
}

func (w *worker) resume()  { w.next() }
func (w *worker) suspend() { w.give(struct{}{}) }
