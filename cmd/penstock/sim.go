package main

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/host"
)

// simulation runs calls on its own clock, which advances from event to event: a call arrives, a wait
// ends, a call finishes, a timer of the engine fires. Each call is a coroutine, and only one runs at
// any time, so the same calls have the same outcome on every machine. simulation is the Clock and the
// Host of the engine under test.
type simulation struct {
	now    int64
	events events
	order  int
	runs   *fiber   // the running call, or nil
	asleep []*fiber // sleeping calls that a context can wake, in the order in which their sleep began
	active int      // calls that have started but not finished
	busy   machine
}

// machine is the machine's load as seen by rules.
type machine struct{ load, cpu, memory float64 }

// fiber is a call.
type fiber struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	ctx   context.Context // of its sleep
	naps  int             // number of sleeps so far
}

// event is a function to run at a time. Events at the same time run in the order of their planning.
type event struct {
	at    int64
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

func newSimulation(start time.Time, busy machine) *simulation {
	return &simulation{now: start.UnixNano(), busy: busy}
}

// at plans an event.
func (s *simulation) at(t int64, do func()) {
	s.order++
	heap.Push(&s.events, event{max(t, s.now), s.order, do})
}

// call starts a call, which runs alone until it sleeps or ends.
func (s *simulation) call(do func()) {
	f := new(fiber)
	f.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		do()
		s.active--
	})
	s.active++
	s.resume(f)
}

// resume runs a call until it sleeps or ends, and then the calls whose sleep it has ended.
func (s *simulation) resume(f *fiber) {
	s.runs = f
	f.next()
	s.runs = nil
	for i := 0; i < len(s.asleep); i++ {
		select {
		case <-s.asleep[i].ctx.Done():
			s.resume(s.asleep[i])
			return // it has checked all of them
		default:
		}
	}
}

// step advances the clock to the next event and runs it. It returns false if there is none.
func (s *simulation) step() bool {
	if len(s.events) == 0 {
		return false
	}
	e := heap.Pop(&s.events).(event)
	s.now = e.at
	e.do()
	return true
}

// Now returns the time.
func (s *simulation) Now() int64 { return s.now }

// Sleep suspends the running call for d, or until ctx ends.
func (s *simulation) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	f := s.runs
	f.ctx = ctx
	f.naps++
	nap, over := f.naps, false
	s.at(s.now+int64(d), func() {
		if f.naps == nap {
			over = true
			s.resume(f)
		}
	})
	if ctx.Done() != nil {
		s.asleep = append(s.asleep, f)
	}
	f.yield(struct{}{})
	f.naps++
	if i := slices.Index(s.asleep, f); i >= 0 {
		s.asleep = slices.Delete(s.asleep, i, i+1)
	}
	if over {
		return nil
	}
	return ctx.Err()
}

// Alarm schedules a call of ring after d.
func (s *simulation) Alarm(d time.Duration, ring func()) (stop func()) {
	stopped := false
	s.at(s.now+int64(d), func() {
		if !stopped {
			ring()
		}
	})
	return func() { stopped = true }
}

// Load returns the configured load.
func (s *simulation) Load(int64) (float64, error) { return s.busy.load, nil }

// CPU returns the configured CPU use.
func (s *simulation) CPU(int64) (float64, error) { return s.busy.cpu, nil }

// Memory returns the configured use of a machine with 16 GiB.
func (s *simulation) Memory(int64) (host.Memory, error) {
	const limit = 16 << 30
	return host.Memory{Used: int64(s.busy.memory * limit), Limit: limit}, nil
}

// callContext is the context of a call whose caller waits only until a time of the simulation.
type callContext struct {
	context.Context
	deadline int64
}

// Deadline returns the time when the caller gives up.
func (c callContext) Deadline() (time.Time, bool) { return time.Unix(0, c.deadline), true }
