package adaptive_test

import (
	"container/heap"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// service is the backend of the guarded calls: a number of workers, each working on one unit
// at a time. A call that finds none free waits in a queue, first come, first served; or all calls
// are worked on, the slower the more there are. It is advanced from one arrival or end of work to
// the next; nothing happens in between.
type service struct {
	*guard
	rand    *rand.Rand
	workers int
	mean    time.Duration              // mean duration of one unit of work
	times   func(r *rand.Rand) float64 // duration as a share of mean
	units   func(r *rand.Rand) int     // of a call; nil means 1
	sharing bool                       // work on all calls at once, without a queue
	sheds   bool                       // or neither: a call that finds no worker fails at once
	fails   float64                    // share of the calls that fail halfway
	learns  bool                       // a rule learns from it
	opts    [2]engine.Option
	mix     []float64 // shares of the calls of each level, the highest first; nil means that no call has one

	offered, admitted [4]int // calls by level, and the ones that passed

	at      time.Duration // since the start
	effort  float64       // done on each job so far, in ns: the clock of sharing
	free    int
	line    []*work
	working ends
	inside  int

	done    int // units of successful calls
	refused int
}

// work is one call.
type work struct {
	entry  engine.Entry
	units  int
	end    float64 // the time at which it ends or, for sharing, the effort
	failed bool
}

type ends []*work

func (h ends) Len() int           { return len(h) }
func (h ends) Less(a, b int) bool { return h[a].end < h[b].end }
func (h ends) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *ends) Push(x any)        { *h = append(*h, x.(*work)) }
func (h *ends) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

var errWork = errors.New("it went wrong")

func newService(t *testing.T, g *guard, seed uint64, workers int, mean time.Duration, times func(*rand.Rand) float64) *service {
	s := &service{guard: g, rand: rand.New(rand.NewPCG(seed, uint64(workers))), workers: workers, free: workers, mean: mean, times: times}
	t.Cleanup(func() {
		for _, w := range slices.Concat(s.line, s.working) {
			w.entry.Exit()
		}
	})
	return s
}

// resize changes the number of workers. Surplus workers finish their work.
func (s *service) resize(workers int) {
	s.free += workers - s.workers
	s.workers = workers
	s.serve()
}

// capacity returns the number of units per second that it can serve.
func (s *service) capacity() float64 { return float64(s.workers) / s.mean.Seconds() }

// speed returns the work done on each job in a unit of time.
func (s *service) speed() float64 {
	if !s.sharing || s.inside <= s.workers {
		return 1
	}
	return float64(s.workers) / float64(s.inside)
}

// run makes calls at random times, at the given rate per second, and calls each every tenth of a
// second.
func (s *service) run(rate float64, length time.Duration, each func()) {
	const tick = 100 * ms
	until := s.at + length
	next, look := s.at+s.pause(rate), s.at+tick
	for s.at < until {
		to := min(next, look)
		if len(s.working) > 0 {
			to = min(to, s.ends())
		}
		s.moveTo(to)
		for len(s.working) > 0 && s.ends() <= s.at {
			s.finish(heap.Pop(&s.working).(*work))
		}
		if s.at >= next {
			s.arrive()
			next = s.at + s.pause(rate)
		}
		if s.at >= look {
			each()
			look += tick
		}
	}
}

func (s *service) pause(rate float64) time.Duration {
	return time.Duration(s.rand.ExpFloat64() / rate * 1e9)
}

// ends returns when the next job ends.
func (s *service) ends() time.Duration {
	if !s.sharing {
		return max(s.at, time.Duration(s.working[0].end))
	}
	return s.at + time.Duration(math.Ceil(max(0, s.working[0].end-s.effort)/s.speed()))
}

func (s *service) moveTo(at time.Duration) {
	s.effort += float64(at-s.at) * s.speed()
	s.clock.Advance(at - s.at)
	s.at = at
	if s.sharing && len(s.working) > 0 && s.working[0].end-s.effort < 1 {
		s.effort = max(s.effort, s.working[0].end) // less than a nanosecond is lost to rounding
	}
}

func (s *service) arrive() {
	units := 1
	if s.units != nil {
		units = s.units(s.rand)
	}
	s.opts = [2]engine.Option{engine.Units(units)}
	level := s.level()
	if level >= 0 {
		s.opts[1] = engine.Criticality(core.CriticalPlus + core.Level(level))
		s.offered[level]++
	}
	e, err := s.Enter(s.t.Context(), "orders", s.opts[:])
	if err != nil {
		s.refused += units
		return
	}
	if level >= 0 {
		s.admitted[level]++
	}
	w := &work{entry: e, units: units}
	s.inside += units
	w.failed = s.rand.Float64() < s.fails
	switch {
	case s.sharing:
		s.begin(w)
	case s.sheds && s.free < units:
		w.failed = true
		s.free -= units // as if it had been worked on
		w.end = float64(s.at + s.mean/20)
		heap.Push(&s.working, w)
	default:
		s.line = append(s.line, w)
		s.serve()
	}
}

// level draws the level of a call, as its distance from the highest; -1 if calls have none.
func (s *service) level() int {
	if s.mix == nil {
		return -1
	}
	at := s.rand.Float64()
	for i, share := range s.mix {
		if at -= share; at < 0 {
			return i
		}
	}
	return len(s.mix) - 1
}

func (s *service) serve() {
	for len(s.line) > 0 && s.free >= s.line[0].units {
		w := s.line[0]
		s.line = s.line[1:]
		s.begin(w)
	}
}

func (s *service) begin(w *work) {
	s.free -= w.units
	takes := s.times(s.rand) * float64(s.mean)
	if w.failed {
		takes /= 2
	}
	w.end = float64(s.at) + takes
	if s.sharing {
		w.end = s.effort + takes
	}
	heap.Push(&s.working, w)
}

func (s *service) finish(w *work) {
	s.free += w.units
	s.inside -= w.units
	if w.failed {
		w.entry.Fail(errWork)
	} else {
		s.done += w.units
	}
	w.entry.Exit()
	s.serve()
}

// Durations of work, as a share of its mean.
func always(*rand.Rand) float64        { return 1 }
func exponential(r *rand.Rand) float64 { return r.ExpFloat64() }

func lognormal(sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Exp(sigma*r.NormFloat64() - sigma*sigma/2) }
}

// pareto has a heavy tail: no variance for a shape of 2 and below, no mean at 1 and below.
func pareto(shape float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return (shape - 1) / shape * math.Pow(1-r.Float64(), -1/shape) }
}
