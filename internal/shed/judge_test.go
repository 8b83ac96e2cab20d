package shed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/proof/chance"
)

// of are the units of a semaphore.
type of struct {
	*meter.Semaphore
	call call
}

func (u of) Fits(limit int64) bool { return u.Semaphore.Fits(u.call.units, limit) }
func (u of) Take(limit int64) bool { return u.TryAcquire(u.call.lane, u.call.units, limit) }
func (u of) Release()              { u.Semaphore.Release(u.call.lane, u.call.units) }

// running is a call that a naive judge has admitted.
type running struct {
	call
	reserved bool
}

// naive decides by adding up the calls that run.
func naive(runs []running, st *state, floor spec.Percent, c call) Verdict {
	var all, level int64
	for _, x := range runs {
		if x.reserved {
			all += x.units
		}
		if x.rank == c.rank {
			level += x.units
		}
	}
	reserve := st.reserves[c.rank]
	if st.limit != Open && 100*level < int64(floor)*st.limit {
		reserve = 0
	}
	switch {
	case st.limit == Open || all+c.units <= st.limit-reserve:
		return Admitted
	case all+c.units <= st.limit && reserve > 0:
		return Shed
	}
	return Refused
}

// Call for call, the verdicts are those of a judge that adds up the calls that run.
func TestJudgeIsANaiveOne(t *testing.T) {
	r := chance.Source(t)
	for range 2000 {
		floors := spec.Floors{Critical: spec.Percent(r.IntN(3) * 10), Sheddable: spec.Percent(r.IntN(3) * 20)}
		j := NewJudge(NewGate(1), spec.ShedLevels, floors)
		share := [levels]spec.Percent{0, floors.Critical, 0, floors.Sheddable}
		var g meter.Semaphore
		var runs []running
		for range 60 {
			switch r.IntN(10) {
			case 0:
				st := &state{limit: r.Int64N(40)}
				for i := 1; i < levels; i++ {
					st.reserves[i] = st.reserves[i-1] + r.Int64N(6)
				}
				if r.IntN(10) == 0 {
					st.limit = Open
				}
				j.state.Store(st)
			case 1, 2, 3:
				if len(runs) == 0 {
					continue
				}
				i := r.IntN(len(runs))
				x := runs[i]
				runs[i] = runs[len(runs)-1]
				runs = runs[:len(runs)-1]
				if x.reserved {
					g.Release(0, x.units)
				}
				if share[x.rank] > 0 {
					j.levels[x.rank].held.Release(0, x.units)
				}
			default:
				c := call{rank: r.IntN(levels), units: 1 + r.Int64N(3)}
				want := naive(runs, j.state.Load(), share[c.rank], c)
				asked, _ := look(j, c, of{&g, c})
				v, reserved := take(j, c, of{&g, c})
				require.Equal(t, want, v)
				require.Equal(t, want, asked)
				if v == Admitted {
					runs = append(runs, running{c, reserved})
				}
			}
		}
	}
}

func TestRefusalsByVerdict(t *testing.T) {
	b := core.NewBlockError(core.BlockError{Kind: core.KindSystem, Resource: "a", Rule: "r"}, nil)
	all := &Refusals{limit: b}
	require.Nil(t, all.Of(Admitted, core.Critical))
	require.Same(t, b, all.Of(Refused, core.Sheddable))
	require.Nil(t, NewJudge(NewGate(1), spec.ShedNone, spec.Floors{}))
}
