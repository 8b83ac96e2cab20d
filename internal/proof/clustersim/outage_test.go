package clustersim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/sharing"
)

// When the store becomes unreachable, few calls wait for it and none longer than its timeout; when
// it is reachable again, members reconnect one after the other, and within two seconds all share
// the limit again.
func TestOutage(t *testing.T) {
	const within, step = 2 * time.Second, 10 * time.Millisecond
	for seed := range uint64(5) {
		w := NewWorld(seed)
		s := w.NewServer(0)
		book := s.NewBook("w", sharing.WindowConfig{Shape: second, Threshold: 10_000, Rule: cluster.Rule{Scope: cluster.Global}})
		book.Keeps = true
		const members = 20
		var callers []*Caller
		for range members {
			l := s.NewLink(w.NewClock(time.Duration(w.Random.Int64N(int64(time.Hour))), 1+(w.Random.Float64()-0.5)/1000))
			l.Latency, l.Jitter = 500*time.Microsecond, 500*time.Microsecond
			c := s.NewNode(l.clock, l, members).Share(book)
			callers = append(callers, c)
			var next func()
			next = func() {
				c.Take(1, 0)
				w.After(time.Duration(w.Random.ExpFloat64()*float64(time.Second)*members/15_000), next)
			}
			w.After(time.Duration(1+w.Random.Int64N(int64(time.Millisecond))), next)
		}
		// busiest returns the number of commands in the busiest 50 ms.
		busiest := func(d time.Duration) int64 {
			s.Busiest = 0
			w.Run(d)
			return s.Busiest
		}
		requests := func() (most int64) {
			for _, c := range callers {
				most = max(most, c.Window.Stats().Requests)
				c.Waited, c.Longest = 0, 0
			}
			return most
		}
		w.Run(2 * time.Second)
		steady := busiest(2 * time.Second)
		before := requests()
		s.Down = true
		w.Run(500 * time.Millisecond)
		if n := requests() - before; n > 20 {
			t.Errorf("seed %d: %d commands before members stop asking", seed, n)
		}
		w.Run(3 * time.Second)
		for _, c := range callers {
			if !c.Window.Stats().Unreachable || c.Waited > 0 {
				t.Errorf("seed %d: %d calls have waited, %+v", seed, c.Waited, c.Window.Stats())
			}
		}
		s.Down = false
		s.Busiest = 0
		var last time.Duration // until the last member had reconnected
		for at := time.Duration(0); at < within; at += step {
			w.Run(step)
			if slices.ContainsFunc(callers, func(c *Caller) bool { return c.Window.Stats().Unreachable }) {
				last = at + step
			}
		}
		t.Logf("%d commands in the busiest 50 ms, %d when the store is back; the last member reconnects after %v", steady, s.Busiest, last)
		if s.Busiest > 2*steady {
			t.Errorf("seed %d: %d commands in 50 ms when the store is back, %d before", seed, s.Busiest, steady)
		}
		if last >= within {
			t.Errorf("seed %d: a member is not back after %v", seed, within)
		}
		for _, c := range callers {
			if c.Longest > cluster.DefaultTimeout+cluster.DefaultTimeout/1000 {
				t.Errorf("seed %d: a call has waited for %v", seed, c.Longest)
			}
			c.Admitted = 0
		}
		book.log = nil // units admitted while members reconnect may exceed the limit; see docs/cluster.md
		w.Run(2 * time.Second)
		if most := book.MostIn(second.Interval); most > 10_000 || most < 9_500 {
			t.Errorf("seed %d: %d admitted in a second", seed, most)
		}
		least, most := callers[0].Admitted, int64(0)
		for _, c := range callers {
			least, most = min(least, c.Admitted), max(most, c.Admitted)
		}
		t.Logf("in the next two seconds, a member admits %d to %d", least, most)
		if least < 500 {
			t.Errorf("seed %d: one of %d members has admitted %d of %d", seed, members, least, 2*10_000)
		}
		w.End()
	}
}

// A call waits at most one timeout, even under several limits and through any failure of the store.
// known bug 96
func TestThreeLimits(t *testing.T) {
	for name, trouble := range map[string]func(*Server, *Link){
		"away":    func(s *Server, _ *Link) { s.Down = true },
		"cut off": func(_ *Server, l *Link) { l.Cut = true },
		"slow":    func(_ *Server, l *Link) { l.Latency = 500 * time.Millisecond },
		"lossy":   func(_ *Server, l *Link) { l.LostBefore, l.LostAfter = 0.5, 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(1)
			defer w.End()
			s := w.NewServer(0)
			l := s.NewLink(w.NewClock(0, 1))
			l.Latency = time.Millisecond
			n := s.NewNode(l.clock, l, 4)
			var callers []*Caller
			for _, name := range []string{"a", "b", "c"} {
				callers = append(callers, n.Share(s.NewBook(name, sharing.WindowConfig{
					Shape: second, Threshold: 10, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
				})))
			}
			calls, inVain, longest := 0, 0, time.Duration(0)
			fetch := func() {
				begin := w.Now()
				needs := make([]sharing.Need, len(callers))
				for i, c := range callers {
					needs[i] = sharing.Need{Limit: c.Window, Units: 1}
				}
				if err := n.Member.Fetch(context.Background(), cluster.DefaultTimeout, needs); err != nil {
					t.Error(err)
				}
				waited := time.Duration(w.Now() - begin)
				longest = max(longest, waited)
				if calls++; waited > 0 && !needs[0].Got {
					inVain++
				}
			}
			for range 100 { // one after the other
				w.After(time.Duration(w.Random.Int64N(int64(3*time.Second))), func() { n.Clock.Call(fetch) })
			}
			w.Run(time.Second)
			trouble(s, l)
			inVain = 0
			w.Run(3 * time.Second)
			if calls != 100 || longest > cluster.DefaultTimeout+time.Microsecond {
				t.Errorf("%d calls, one has waited for %v", calls, longest)
			}
			if name != "lossy" && inVain > 20 {
				t.Errorf("%d calls have waited in vain", inVain)
			}
		})
	}
}
