package sharing

import (
	"container/heap"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
)

// agenda runs a member's tasks at their times, on one alarm of the clock.
type agenda struct {
	tasks  tasks
	at     int64  // when the alarm rings, if stop isn't nil
	stop   func() // the alarm
	closed bool
}

// task is a function to run at a time. It is on the agenda at most once.
type task struct {
	at    int64
	index int // in the heap, from 1; 0 if it isn't scheduled
	do    func(now int64)
}

// plan schedules a task, and replaces the time it was scheduled for before.
func (m *Member) plan(t *task, at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putLocked(t, at)
}

func (m *Member) putLocked(t *task, at int64) {
	switch {
	case m.agenda.closed || t.index > 0 && t.at == at:
		return
	case t.index > 0:
		t.at = at
		heap.Fix(&m.agenda.tasks, t.index-1)
	default:
		t.at = at
		heap.Push(&m.agenda.tasks, t)
	}
	m.armLocked()
}

// unplan removes a task from the agenda.
func (m *Member) unplan(t *task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.index > 0 {
		heap.Remove(&m.agenda.tasks, t.index-1)
	}
}

// armLocked sets the alarm for the first task, unless it already rings by then.
func (m *Member) armLocked() {
	a := &m.agenda
	if a.closed || len(a.tasks) == 0 || a.stop != nil && a.at <= a.tasks[0].at {
		return
	}
	if a.stop != nil {
		a.stop()
	}
	a.at = a.tasks[0].at
	a.stop = clocks.Alarm(m.clock, time.Duration(max(0, a.at-m.clock.Now())), m.ring)
}

// ring runs the tasks that are due. The clock may be user code: if it panics, the member tries
// again a second later.
func (m *Member) ring() {
	defer func() {
		if reason := recover(); reason != nil {
			m.cfg.Logger.Error("penstock: recovered from a panic in a cluster member; it continues in one second", "panic", reason, "stack", string(debug.Stack()))
			clocks.Alarm(m.clock, time.Second, m.ring)
		}
	}()
	now := m.now()
	m.mu.Lock()
	a := &m.agenda
	a.stop = nil
	var due []*task
	for !a.closed && len(a.tasks) > 0 && a.tasks[0].at <= now {
		due = append(due, heap.Pop(&a.tasks).(*task))
	}
	m.mu.Unlock()
	for _, t := range due {
		t.do(now)
	}
	m.flush(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armLocked()
}

// tasks are ordered by time.
type tasks []*task

func (t tasks) Len() int           { return len(t) }
func (t tasks) Less(i, j int) bool { return t[i].at < t[j].at }

func (t tasks) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i+1, j+1
}

func (t *tasks) Push(x any) {
	*t = append(*t, x.(*task))
	x.(*task).index = len(*t)
}

func (t *tasks) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	x.index = 0
	return x
}
