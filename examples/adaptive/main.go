// Adaptive shows a limit that nobody has to know: sixteen workers serve all calls, 20 ms each. First
// the rule runs in shadow mode, then it is enforced; then half of the workers stop, and later start
// again.
//
//	go run ./examples/adaptive
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	s := &service{clock: api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	guard, err := api.New(api.Config{Clock: s.clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	s.guard = guard
	mode := api.Shadow
	for _, part := range []struct {
		what    string
		mode    api.Mode
		workers int
		rate    int // calls per second
	}{
		{"a quiet time, in shadow mode", api.Shadow, 16, 500},
		{"more comes than can be served", api.Shadow, 16, 840},
		{"the rule is enforced", api.Enforce, 16, 1000},
		{"eight of the workers go", api.Enforce, 8, 1000},
		{"and come back", api.Enforce, 16, 1000},
	} {
		if part.mode != mode || s.guard.Rules().Len() == 0 {
			mode = part.mode
			if err := guard.LoadRules(api.RuleSet{Adaptive: []adaptive.Rule{
				{ID: "learn", Resource: "GET /search", Start: 40, Mode: mode},
			}}); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%s: %d workers, %d calls a second\n", part.what, part.workers, part.rate)
		for range 3 {
			s.tally = tally{}
			for range 5000 {
				s.step(part.workers, part.rate)
			}
			learned := guard.Tree().Rules[0].Details.(adaptive.Stats).Limits[0]
			fmt.Fprintf(w, "  %3d/s served, %3d/s refused, %5v each; limit %d\n",
				s.served/5, s.refused/5, (s.took / time.Duration(s.served)).Round(time.Millisecond), learned.Limit)
		}
	}
	for _, c := range s.line {
		c.entry.Exit()
	}
	return nil
}

// service is a number of workers, with a queue of calls before them.
type service struct {
	clock *api.ManualClock
	guard *api.Guard
	line  []call // the first ones are in progress
	calls int
	tally
}

type call struct {
	entry api.Admitted
	came  int64
	left  time.Duration
}

type tally struct {
	served, refused int
	took            time.Duration
}

// step simulates a millisecond.
func (s *service) step(workers, rate int) {
	const step = time.Millisecond
	s.calls += rate
	for ; s.calls >= 1000; s.calls -= 1000 {
		e, err := s.guard.Entry(context.Background(), "GET /search")
		if err != nil {
			s.refused++
			continue
		}
		s.line = append(s.line, call{e, s.clock.Now(), 20 * step})
	}
	s.clock.Advance(step)
	waiting := s.line[:0]
	for i, c := range s.line {
		if i < workers {
			c.left -= step
		}
		if c.left > 0 {
			waiting = append(waiting, c)
			continue
		}
		s.served++
		s.took += time.Duration(s.clock.Now() - c.came).Round(step)
		c.entry.Exit()
	}
	s.line = waiting
}
