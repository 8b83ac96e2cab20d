//go:build sim

package shed

import (
	"testing"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/shared"
)

// watched are units in flight whose referee sees each attempt, in the instant in which it is made: the
// scheduler switches only before an access.
type watched struct {
	*referee
	call call
	last *instant
}

// instant has the numbers that a decision saw.
type instant struct {
	inUse int64 // before the call
	state *state
}

type referee struct {
	inUse    shared.Int64
	state    *state // in force
	ignoring int64  // units of calls that have ignored their reserve
}

func (w watched) Fits(limit int64) bool { return w.inUse.Load() <= limit-w.call.units }

func (w watched) Take(limit int64) bool {
	for {
		n := w.inUse.Load()
		*w.last = instant{n, w.state}
		if n > limit-w.call.units {
			return false
		}
		if w.inUse.CompareAndSwap(n, n+w.call.units) {
			*w.last = instant{n, w.state}
			return true
		}
	}
}

func (w watched) Release() { w.inUse.Add(-w.call.units) }

// passes is the verdict of a state on a call of that many units.
func (st *state) passes(rank int, inUse, n int64) bool { return inUse+n <= st.limit-st.reserves[rank] }

// Calls of all levels enter and exit while the limit and the reserves change. Each decision is that of
// the state in force in the instant in which the units in flight were looked at, so no level passes in
// an instant in which a higher one would be refused; except below its floor, and then the level has no
// more in flight than that. The limit holds always.
func TestSimNoLevelPassesBeforeAHigherOne(t *testing.T) {
	schedules.Random(t, func(s *schedules.Schedule) {
		r := &referee{}
		j := NewJudge(NewGate(1+s.Rand.Int64N(4)), spec.ShedLevels, spec.Floors{Sheddable: spec.Percent(s.Rand.IntN(2) * 50)})
		publish := func(st *state) {
			j.state.Store(st)
			r.state = st
		}
		draw := func() *state {
			st := &state{limit: 1 + s.Rand.Int64N(mostLimit)}
			for i := 1; i < levels; i++ {
				st.reserves[i] = st.reserves[i-1] + s.Rand.Int64N(2)
			}
			return st
		}
		publish(draw())
		for range 2 + s.Rand.IntN(3) {
			c := call{rank: s.Rand.IntN(levels), units: 1 + s.Rand.Int64N(mostUnits)}
			s.Go(func() {
				for range 2 {
					decide(s, r, j, c)
				}
			})
		}
		states := []*state{draw(), draw(), {limit: Open}, draw()}[:1+s.Rand.IntN(4)]
		s.Named("law", func() {
			for _, st := range states {
				publish(st)
			}
		})
		s.Check(func() {
			if n := r.inUse.Load(); n != 0 || j.levels[levels-1].held.InUse() != 0 {
				s.Failf("%d units are left", n)
			}
		})
	})
}

const (
	mostUnits = 2 // of a call
	mostLimit = 4
	mostFloor = 2 // half of the limit
)

func decide(s *schedules.Schedule, r *referee, j *Judge, c call) {
	w := watched{r, c, new(instant)}
	v, reserved := take(j, c, w)
	at := w.last
	ignores := reserved && !at.state.passes(c.rank, at.inUse, c.units)
	switch {
	case reserved && at.inUse+c.units > at.state.limit:
		s.Failf("%d units run, and the limit is %d", at.inUse+c.units, at.state.limit)
	case ignores && j.floors[c.rank] == 0:
		s.Failf("level %d passed with %d units in flight under %v", c.rank, at.inUse, *at.state)
	case v != Admitted && at.state.passes(c.rank, at.inUse, c.units):
		s.Failf("level %d was refused with %d units in flight under %v", c.rank, at.inUse, *at.state)
	}
	if v != Admitted {
		return
	}
	if ignores {
		if r.ignoring += c.units; r.ignoring > mostFloor-1+mostUnits {
			s.Failf("%d units have ignored their reserve, and the floor is at most %d", r.ignoring, mostFloor)
		}
	}
	s.Clock().Now()
	if ignores {
		r.ignoring -= c.units
	}
	if reserved {
		w.Release()
	}
	if j.floors[c.rank] > 0 {
		j.levels[c.rank].held.Release(c.lane, c.units)
	}
}
