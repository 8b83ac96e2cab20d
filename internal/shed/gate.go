// Package shed lets the rules of several families refuse calls of the lowest criticality first.
//
// A rule leaves units free for the levels above that of a call: the reserve of the level. The law of
// the reserves is in law.go, the decision in judge.go.
package shed

import (
	"math"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// Open is the limit of a gate whose rule doesn't limit at the moment.
const Open = math.MaxInt64

// Gate holds the counts of a limit by level, and its reserves. It survives the revisions of its rule.
// Make one with [NewGate]. Safe for concurrent use.
type Gate struct {
	state shared.Pointer[state] // never nil; changes under mu
	due   shared.Int64          // the time of the next look at the counts

	levels     [levels]counts
	done, time stat.Tally // units that have completed, and the time they were in flight

	mu          shared.Mutex // guards the fields below it
	law         law
	limit, most int64
}

// counts are those of one level.
type counts struct {
	calls, units stat.Tally // that asked
	admitted     stat.Tally // calls
	held         meter.Semaphore
}

// state is a limit in force with its reserves. It is immutable.
type state struct {
	limit    int64
	reserves [levels]int64
}

// NewGate returns a gate with a limit and without calls.
func NewGate(limit int64) *Gate {
	s := &Gate{limit: limit, most: math.MaxInt64}
	s.state.Store(&state{limit: limit})
	return s
}

// SetLimit puts a limit into force; no reserve is above most.
func (s *Gate) SetLimit(limit, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.most = limit, most
	s.publishLocked()
}

func (s *Gate) publishLocked() {
	next := state{limit: s.limit}
	if s.limit != Open {
		next.reserves = s.law.reserves(s.limit, s.most)
	}
	if *s.state.Load() != next {
		s.state.Store(&next)
	}
}

// look updates the reserves. There is no timer: the first call after a period does it.
func (s *Gate) look(now int64) {
	due := s.due.Load()
	if now < due || !s.due.CompareAndSwap(due, now+period) {
		return
	}
	t := totals{done: s.done.Load(), time: s.time.Load()}
	for i := range s.levels {
		t.calls[i], t.units[i] = s.levels[i].calls.Load(), s.levels[i].units.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.law.look(now, t)
	s.publishLocked()
}

// count records a decision on a call.
func (s *Gate) count(c call, admitted bool) {
	of := &s.levels[c.rank]
	of.calls.Add(c.lane, 1)
	of.units.Add(c.lane, c.units)
	if admitted {
		of.admitted.Add(c.lane, 1)
	}
}

// Complete records the end of a call that took units at a time, its token. The end of a long-lived one
// says nothing of how fast units complete.
func (s *Gate) Complete(inv *engine.Invocation, took int64) {
	if inv.LongLived() {
		return
	}
	s.done.Add(inv.Lane(), inv.Units())
	s.time.Add(inv.Lane(), inv.Units()*max(0, inv.Now()-took))
}

// Stats returns the counts of each level, the highest first.
func (s *Gate) Stats() []core.LevelStats {
	st := s.state.Load()
	all := make([]core.LevelStats, levels)
	for i := range all {
		c := &s.levels[i]
		admitted := c.admitted.Load() // before calls, which count first
		calls := c.calls.Load()
		all[i] = core.LevelStats{
			Level: core.CriticalPlus + core.Level(i), Offered: calls, Admitted: admitted, Refused: calls - admitted, Reserve: st.reserves[i],
		}
	}
	return all
}
