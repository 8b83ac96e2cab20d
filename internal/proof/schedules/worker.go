//go:build sim

package schedules

import (
	"iter"
	"runtime/debug"
)

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
