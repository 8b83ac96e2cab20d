//go:build sim

package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/penstock-go/penstock/internal/shared"
)

// maxSteps ends a schedule whose callers wait for each other.
const maxSteps = 200_000

// Schedule is one interleaving of one machine.
type Schedule struct {
	// Rand is for the scenario: how many callers, which amounts, what limit. Running callers must
	// not use it.
	Rand *rand.Rand

	chooser chooser
	pool    *pool
	tasks   []*task
	ready   []*task // can continue
	waiting []*task // wait for a condition
	locks   []any   // held locks
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
	pending  access      // its next step
	blocked  any         // the lock that it waits for
	until    func() bool // the condition that it waits for
	wake     int64       // when the clock ends its sleep, or 0 if it doesn't sleep
	done     bool
}

// Go adds a caller. It starts when the schedule does.
func (s *Schedule) Go(run func()) { s.Named(fmt.Sprint("caller ", len(s.tasks)+1), run) }

// Named is like Go, but gives the caller a name, which traces show.
func (s *Schedule) Named(name string, run func()) {
	s.tasks = append(s.tasks, &task{schedule: s, number: len(s.tasks), name: name, run: run})
}

// Check adds a condition that must hold when all callers have returned. The last one added is
// checked first.
func (s *Schedule) Check(check func()) { s.checks = append(s.checks, check) }

// Failf records that a condition doesn't hold. Only the first failure counts.
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

// switchTo lets another caller continue, and returns when this one may continue.
func (s *Schedule) switchTo(t *task) {
	me := s.running
	if t == me {
		return
	}
	s.next = t
	me.worker.suspend()
}

// choose returns the caller that continues, or nil if all have returned. me is the running caller
// if it could continue, or nil.
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
				s.Failf("deadlock: %s can't continue, and no other caller can", t.name)
			}
		}
		return nil
	}
	return s.chooser.choose(s, me)
}

func (s *Schedule) drop(t *task) {
	if i := slices.Index(s.ready, t); i >= 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}
