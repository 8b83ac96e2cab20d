// System shows a process that protects itself: a machine that can serve 400 calls a second gets
// 1200, first with a gate on its CPU use, which swings between all and nothing, then with a steady
// rule, which finds the sustainable rate.
//
//	go run ./examples/system
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/system"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	for _, strategy := range []system.Strategy{system.Gate, system.Steady} {
		if err := overload(w, system.Rule{ID: "cpu", Metric: system.CPU, Threshold: 0.8, Strategy: strategy}); err != nil {
			return err
		}
	}
	return nil
}

func overload(w io.Writer, rule system.Rule) error {
	s := &server{clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	guard, err := api.New(api.Config{Clock: s.clock, Host: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	s.guard = guard
	if err := guard.LoadRules(api.RuleSet{System: []system.Rule{rule}}); err != nil {
		return err
	}
	var passed, inFlight string
	for quarter := range 16 {
		rate := 1200
		if quarter < 4 {
			rate = 200 // a quiet first second
		}
		passed += fmt.Sprintf("%5d", s.quarter(rate))
		inFlight += fmt.Sprintf("%5d", len(s.jobs))
	}
	fmt.Fprintf(w, "%s, quarters of a second:\npassed   %s\nin flight%s\n", rule.Strategy, passed, inFlight)
	for _, j := range s.jobs {
		j.entry.Exit()
	}
	return nil
}

// server has four processors, which the calls in flight share. Each call takes 10 ms of a processor.
// The server reports its CPU use to the rules.
type server struct {
	clock  *api.ManualClock
	guard  *api.Guard
	jobs   []*job
	worked time.Duration // since the previous reading
	asked  int64
	use    float64
}

type job struct {
	entry api.Admitted
	left  time.Duration
}

const (
	processors = 4
	work       = 10 * time.Millisecond
)

// quarter simulates a quarter of a second of calls, and returns the number that passed.
func (s *server) quarter(rate int) (passed int) {
	const step = time.Millisecond
	for ms := range 250 {
		for range (ms+1)*rate/1000 - ms*rate/1000 {
			if e, err := s.guard.Entry(context.Background(), "GET /orders", api.Inbound()); err == nil {
				s.jobs = append(s.jobs, &job{e, work})
				passed++
			}
		}
		share := step * processors / time.Duration(max(processors, len(s.jobs)))
		s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool {
			s.worked += min(share, j.left)
			if j.left -= share; j.left > 0 {
				return false
			}
			j.entry.Exit()
			return true
		})
		s.clock.Advance(step)
	}
	return passed
}

// CPU returns the used share of the processors' time since the previous reading.
func (s *server) CPU(now int64) (float64, error) {
	if passed := time.Duration(now - s.asked); s.asked != 0 && passed > 0 {
		s.use = s.worked.Seconds() / (processors * passed.Seconds())
	}
	s.worked, s.asked = 0, now
	return s.use, nil
}

// Load is unused: no rule needs it.
func (s *server) Load(int64) (float64, error) { return 0, nil }

// Memory is unused too.
func (s *server) Memory(int64) (host.Memory, error) { return host.Memory{}, nil }
