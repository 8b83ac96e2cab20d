package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/rules"
)

// learners overloads a simulated service, whose number of workers changes, until an adaptive rule
// has learned how many calls it can serve at once. No call may be admitted beyond the current limit
// or refused within it; and in the end the service works near its capacity, with calls that take
// little longer than their work.
func learners(r *round) error {
	rule := adaptive.Rule{ID: "learn", Resource: "search", Floor: 1 + r.IntN(3), Ceiling: 100 + r.IntN(200), Start: 10 + r.IntN(40)}
	s := &service{round: r, takes: time.Duration(5+r.IntN(36)) * ms, rule: rule}
	s.guard, s.clock = r.guard(api.Config{})
	defer s.stop()
	if err := s.guard.LoadRules(rules.Set{Adaptive: []adaptive.Rule{rule}}); err != nil {
		return err
	}
	defer func() { r.offered.Add(int64(s.offered)) }()
	for range 1 + r.IntN(2) {
		workers := 6 + r.IntN(40)
		serves := float64(workers) / s.takes.Seconds()
		over := serves * (1.2 + 2*r.Float64())
		if err := s.run(workers, over, 60*time.Second); err != nil {
			return err
		}
		s.served, s.took = 0, nil
		if err := s.run(workers, over, 20*time.Second); err != nil {
			return err
		}
		could := int(20 * serves)
		slices.Sort(s.took)
		median := s.took[len(s.took)/2]
		limit := s.limits()
		r.step("%d workers, %v per call, %.0f calls arrive per second: %d of %d served, half of them in %v; limit %d",
			workers, s.takes, over, s.served, could, median, limit.Limit)
		r.checked.Add(2)
		switch {
		case s.served < could*8/10:
			return fmt.Errorf("%d workers, %v per call, %.0f calls per second: %d were served in 20 s, of %d; the limit is %d",
				workers, s.takes, over, s.served, could, limit.Limit)
		case median > 2*s.takes+5*ms:
			return fmt.Errorf("%d workers, %v per call, %.0f calls per second: half of them took more than %v; the limit is %d",
				workers, s.takes, over, median, limit.Limit)
		}
	}
	return nil
}

// service is a number of workers, with a queue of calls before them.
type service struct {
	*round
	guard *api.Guard
	clock *clocks.Manual
	rule  adaptive.Rule
	takes time.Duration

	backlog         float64
	line            []*job // the workers serve the first of them
	offered, served int
	took            []time.Duration
}

// job is an admitted call.
type job struct {
	entry api.Admitted
	came  int64
	left  time.Duration // of its work
}

// limits returns the rule's stats.
func (s *service) limits() adaptive.LimitStats {
	return s.guard.Tree().Rules[0].Details.(adaptive.Stats).Limits[0]
}

// run sends rate calls per second for the given time.
func (s *service) run(workers int, rate float64, lasts time.Duration) error {
	for range lasts / ms {
		for s.backlog += rate / 1000; s.backlog >= 1; s.backlog-- {
			if err := s.come(); err != nil {
				return err
			}
		}
		s.clock.Advance(ms)
		s.work(workers)
	}
	return nil
}

func (s *service) come() error {
	looks := s.offered > 0 && s.one(50)
	var limit adaptive.LimitStats
	if looks {
		limit = s.limits()
	}
	s.offered++
	e, err := s.guard.Entry(s.ctx, "search")
	s.checked.Add(1)
	if err == nil {
		s.line = append(s.line, &job{e, s.clock.Now(), s.takes})
	}
	switch n := len(s.line); {
	case n > s.rule.Ceiling:
		return fmt.Errorf("%d are in flight, above the ceiling of %d", n, s.rule.Ceiling)
	case err != nil && n < s.rule.Floor:
		return fmt.Errorf("a call is refused with %d in flight, below the floor of %d", n, s.rule.Floor)
	case looks && err == nil && int64(n) > limit.InForce:
		return fmt.Errorf("a call was admitted as number %d, but the limit is %d", n, limit.InForce)
	case looks && err != nil && int64(n) < limit.InForce:
		return fmt.Errorf("a call was refused with %d in flight, but the limit is %d", n, limit.InForce)
	}
	return nil
}

func (s *service) work(workers int) {
	waiting := s.line[:0]
	for i, j := range s.line {
		if i < workers {
			j.left -= ms
		}
		if j.left > 0 {
			waiting = append(waiting, j)
			continue
		}
		s.served++
		s.took = append(s.took, time.Duration(s.clock.Now()-j.came))
		j.entry.Exit()
	}
	s.line = waiting
}

func (s *service) stop() {
	for _, j := range s.line {
		j.entry.Exit()
	}
}
