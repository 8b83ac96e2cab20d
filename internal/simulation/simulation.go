// Package simulation runs calls through an engine on a simulated clock, with queues and waits, the
// same way on every machine.
package simulation

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/host"
)

// Simulation runs calls on its own clock, which advances from event to event: a call arrives, a wait
// ends, a call finishes, a timer of the engine fires. Each call is a coroutine, and only one runs at
// any time, so the same calls have the same outcome on every machine. Simulation is the Clock of the
// engine under test.
type Simulation struct {
	now    int64
	events events
	order  int
	runs   *fiber   // the running call, or nil
	asleep []*fiber // sleeping calls that a context can wake, in the order in which their sleep began
	idle   []*fiber // whose call has finished
	active int      // calls that have started but not finished
}

// fiber runs one call after another.
type fiber struct {
	do    func() // the call
	next  func() (struct{}, bool)
	stop  func()
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

// New returns a simulation that starts at a time.
func New(start time.Time) *Simulation { return &Simulation{now: start.UnixNano()} }

// Close releases the coroutines. No call may be active.
func (s *Simulation) Close() {
	for _, f := range s.idle {
		f.stop()
	}
	s.idle = nil
}

// Active returns the number of calls that have started but not finished.
func (s *Simulation) Active() int { return s.active }

// At plans an event.
func (s *Simulation) At(t int64, do func()) {
	s.order++
	heap.Push(&s.events, event{max(t, s.now), s.order, do})
}

// Call starts a call, which runs alone until it sleeps or ends.
func (s *Simulation) Call(do func()) {
	s.active++
	f := s.fiber()
	f.do = do
	s.resume(f)
}

// fiber returns an idle coroutine, or a new one.
func (s *Simulation) fiber() *fiber {
	if last := len(s.idle) - 1; last >= 0 {
		f := s.idle[last]
		s.idle = s.idle[:last]
		return f
	}
	f := new(fiber)
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		for {
			f.do()
			f.do = nil
			s.active--
			s.idle = append(s.idle, f)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return f
}

// resume runs a call until it sleeps or ends, and then the calls whose sleep has ended.
func (s *Simulation) resume(f *fiber) {
	s.runs = f
	f.next()
	s.runs = nil
	s.wake()
}

// wake resumes the calls whose context ended while they sleep.
func (s *Simulation) wake() {
	for i := 0; i < len(s.asleep); i++ {
		select {
		case <-s.asleep[i].ctx.Done():
			s.resume(s.asleep[i])
			return // it has checked all of them
		default:
		}
	}
}

// Step advances the clock to the next event and runs it. It returns false if there is none.
func (s *Simulation) Step() bool {
	if len(s.events) == 0 {
		return false
	}
	e := heap.Pop(&s.events).(event)
	s.now = e.at
	e.do()
	s.wake() // by an event outside of a call
	return true
}

// Run advances the clock to a time and runs the events until then.
func (s *Simulation) Run(until int64) {
	for len(s.events) > 0 && s.events[0].at <= until {
		s.Step()
	}
	s.now = max(s.now, until)
}

// Now returns the time.
func (s *Simulation) Now() int64 { return s.now }

// Sleep suspends the running call for d, or until ctx ends.
func (s *Simulation) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	f := s.runs
	f.ctx = ctx
	f.naps++
	nap, over := f.naps, false
	s.At(s.now+int64(d), func() {
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
func (s *Simulation) Alarm(d time.Duration, ring func()) (stop func()) {
	stopped := false
	s.At(s.now+int64(d), func() {
		if !stopped {
			ring()
		}
	})
	return func() { stopped = true }
}

// Machine is the machine's load as rules see it: a Host.
type Machine struct {
	LoadAverage, CPUShare, MemoryShare float64
}

// Load returns the configured load.
func (m Machine) Load(int64) (float64, error) { return m.LoadAverage, nil }

// CPU returns the configured CPU use.
func (m Machine) CPU(int64) (float64, error) { return m.CPUShare, nil }

// Memory returns the configured use of a machine with 16 GiB.
func (m Machine) Memory(int64) (host.Memory, error) {
	const limit = 16 << 30
	return host.Memory{Used: int64(m.MemoryShare * limit), Limit: limit}, nil
}
