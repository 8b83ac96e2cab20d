//go:build sim

package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"

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

func (s *Schedule) drop(t *task) {
	if i := slices.Index(s.ready, t); i >= 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}
