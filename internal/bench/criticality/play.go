package main

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
)

var levels = []api.Level{api.CriticalPlus, api.Critical, api.SheddablePlus, api.Sheddable}

// demand has the work that the calls of each level ask for, as a share of the capacity.
var demand = []float64{0.2, 0.5, 1, 1.3}

const (
	settling = 60 * time.Second
	watched  = 60 * time.Second
	callTime = 50 * time.Millisecond // mean of an exponential distribution
)

// outcome holds the figures after the limit has settled.
type outcome struct {
	admitted [4]float64 // share of the calls of each level
	work     float64    // share of the capacity
	limit    float64    // mean of the learned limit
}

// service has workers that each serve one call at a time; calls that find none free wait for one.
type service struct {
	rand    *rand.Rand
	guard   *api.Guard
	clock   *api.ManualClock
	at      time.Duration
	free    int
	line    []api.Admitted
	working ends

	offered, passed [4]int
	done            int
}

// work is a call with the time at which it ends.
type work struct {
	entry api.Admitted
	end   time.Duration
}

type ends []work

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].end < e[j].end }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(work)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// play asks a service for three times what it can do.
func play(workers int, order spec.Shed) (o outcome) {
	clock := api.NewManualClock(time.Unix(1_700_000_000, 0))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer guard.Close()
	if err := guard.LoadRules(api.RuleSet{Adaptive: []adaptive.Rule{{Resource: "orders", Shed: order}}}); err != nil {
		panic(err)
	}
	s := &service{rand: rand.New(rand.NewPCG(1, uint64(workers))), guard: guard, clock: clock, free: workers}
	capacity := float64(workers) / callTime.Seconds()
	s.run(3*capacity, settling, func() {})
	s.offered, s.passed, s.done = [4]int{}, [4]int{}, 0
	looks := 0.0
	s.run(3*capacity, watched, func() {
		o.limit += float64(guard.RuleStats()[0].Details.(adaptive.Stats).Limits[0].Limit)
		looks++
	})
	o.limit /= looks
	for i := range o.admitted {
		o.admitted[i] = float64(s.passed[i]) / float64(s.offered[i])
	}
	o.work = float64(s.done) / (capacity * watched.Seconds())
	for _, w := range s.working {
		w.entry.Exit()
	}
	for _, e := range s.line {
		e.Exit()
	}
	return o
}

// run makes calls at random times for some time, and calls look every tenth of a second.
func (s *service) run(rate float64, length time.Duration, look func()) {
	const tick = 100 * time.Millisecond
	pause := func() time.Duration { return time.Duration(s.rand.ExpFloat64() / rate * 1e9) }
	until, next, due := s.at+length, s.at+pause(), s.at+tick
	for s.at < until {
		to := min(next, due)
		if len(s.working) > 0 {
			to = min(to, s.working[0].end)
		}
		s.clock.Advance(to - s.at)
		s.at = to
		for len(s.working) > 0 && s.working[0].end <= s.at {
			heap.Pop(&s.working).(work).entry.Exit()
			s.done++
			s.free++
			s.serve()
		}
		if s.at >= next {
			s.arrive()
			next = s.at + pause()
		}
		if s.at >= due {
			look()
			due += tick
		}
	}
}

func (s *service) arrive() {
	at, i := s.rand.Float64()*3, 0
	for ; i < len(demand)-1 && at >= demand[i]; i++ {
		at -= demand[i]
	}
	s.offered[i]++
	e, err := s.guard.Entry(context.Background(), "orders", api.Criticality(levels[i]))
	if err != nil {
		return
	}
	s.passed[i]++
	s.line = append(s.line, e)
	s.serve()
}

func (s *service) serve() {
	for len(s.line) > 0 && s.free > 0 {
		heap.Push(&s.working, work{s.line[0], s.at + time.Duration(s.rand.ExpFloat64()*float64(callTime))})
		s.line, s.free = s.line[1:], s.free-1
	}
}
