package shed

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// Units are the units in flight of a limit, as a call that asks for some sees them.
type Units interface {
	// Fits reports whether the call's units fit, if at most limit may be in flight with them.
	Fits(limit int64) bool
	// Take takes them if they fit: it checks and counts in one atomic step.
	Take(limit int64) bool
	// Release gives them back.
	Release()
}

// Judge decides on calls for one revision of a rule. Safe for concurrent use.
//
// # No level passes where a higher one is refused
//
// At any instant the units in flight are a number F, and the gate's state is a limit L and a reserve R
// for each level. A call of n units passes if F + n ≤ L - R(level). Since R doesn't fall from a level
// to the next lower one, a call that passes would pass on each higher level.
//
// Each decision is made at one such instant. F is checked and changed in one atomic step, under a
// state that was loaded before that step. A decision counts only if the gate still has that state
// after the step; otherwise a call that took units gives them back, and the decision is made again.
// States are never reused, and the call keeps its own alive: if the pointer is the same, it was so
// throughout, and the state was in force in the instant of the step. Units that are given back were in
// flight for a moment, as those of a call that another rule refuses afterwards; no call ran with them.
//
// # Floors
//
// A level that has less in flight than its floor ignores its reserve, and so may pass where a level
// between it and the highest would not: floors exist for that. The units of such a level are
// counted before the decision, so that the units that ignore the reserve are never more than the floor.
type Judge struct {
	*Gate
	floors [levels]spec.Percent
}

// NewJudge returns a judge at a gate, or nil if the rule has no shed order.
func NewJudge(s *Gate, order spec.Shed, floors spec.Floors) *Judge {
	if order == spec.ShedNone {
		return nil
	}
	return &Judge{s, [levels]spec.Percent{0, floors.Critical, floors.SheddablePlus, floors.Sheddable}}
}

// Verdict is a decision.
type Verdict uint8

// The verdicts.
const (
	Admitted Verdict = iota
	Refused          // by the limit
	Shed             // by the reserve of the level
)

// floor returns the units below which a level ignores its reserve, rounded up; 0 if it has no floor.
func (j *Judge) floor(r int, limit int64) int64 {
	if limit == Open {
		return 0
	}
	whole, part := limit/100, limit%100
	return whole*int64(j.floors[r]) + (part*int64(j.floors[r])+99)/100
}

// call has the properties of a call that count.
type call struct {
	rank  int
	units int64
	lane  uint32
}

func callOf(inv *engine.Invocation) call { return call{rank(inv.Level()), inv.Units(), inv.Lane()} }

// Ask decides on a call as of now, and counts it if it is refused. It takes nothing.
func Ask[U Units](j *Judge, inv *engine.Invocation, units U) Verdict {
	j.look(inv.Now())
	v, _ := Look(j, inv, units)
	if v != Admitted {
		j.count(callOf(inv), false)
	}
	return v
}

// Look is like Ask, but has no side effects. It returns the reserve as well.
func Look[U Units](j *Judge, inv *engine.Invocation, units U) (v Verdict, reserve int64) {
	return look(j, callOf(inv), units)
}

func look[U Units](j *Judge, c call, units U) (v Verdict, reserve int64) {
	for {
		st := j.state.Load()
		if st.limit == Open {
			return Admitted, 0
		}
		reserve = st.reserves[c.rank]
		if j.floors[c.rank] > 0 && j.levels[c.rank].held.InUse() < j.floor(c.rank, st.limit) {
			reserve = 0
		}
		ok := units.Fits(st.limit - reserve)
		if j.state.Load() == st {
			return verdict(ok, units, st.limit, reserve), reserve
		}
	}
}

// verdict returns a decision with its reason.
func verdict[U Units](ok bool, units U, limit, reserve int64) Verdict {
	switch {
	case ok:
		return Admitted
	case reserve > 0 && units.Fits(limit):
		return Shed
	}
	return Refused
}

// Take decides on a call, takes its units and counts it. reserved reports whether units have been
// taken: a rule that doesn't limit at the moment takes none.
func Take[U Units](j *Judge, inv *engine.Invocation, units U) (v Verdict, reserved bool) {
	j.look(inv.Now())
	c := callOf(inv)
	v, reserved = take(j, c, units)
	j.count(c, v == Admitted)
	if v == Admitted {
		inv.OnComplete(j.Gate, inv.Now())
		if j.floors[c.rank] > 0 {
			inv.ReserveSemaphore(&j.levels[c.rank].held)
		}
	}
	return v, reserved
}

// take decides under the state in force. A call of a level with a floor holds its units among those
// of its level as well.
func take[U Units](j *Judge, c call, units U) (v Verdict, reserved bool) {
	for {
		st := j.state.Load()
		v = takeUnder(j, c, units, st)
		reserved = v == Admitted && st.limit != Open
		if j.state.Load() == st {
			return v, reserved
		}
		if reserved {
			units.Release()
		}
		if v == Admitted && j.floors[c.rank] > 0 {
			j.levels[c.rank].held.Release(c.lane, c.units)
		}
	}
}

func takeUnder[U Units](j *Judge, c call, units U, st *state) Verdict {
	held, reserve := &j.levels[c.rank].held, st.reserves[c.rank]
	if j.floors[c.rank] > 0 {
		if held.TryAcquire(c.lane, c.units, j.floor(c.rank, st.limit)-1+c.units) { // less than the floor were in flight
			reserve = 0
		} else {
			held.Acquire(c.lane, c.units)
		}
	}
	if st.limit == Open || units.Take(st.limit-reserve) {
		return Admitted
	}
	if j.floors[c.rank] > 0 {
		held.Release(c.lane, c.units)
	}
	return verdict(false, units, st.limit, reserve)
}

// Explain says which reserve applies to a call, or returns "".
func (j *Judge) Explain(level core.Level, reserve int64) string {
	if limit := j.state.Load().limit; reserve > 0 && limit != Open {
		return fmt.Sprintf("%v calls leave %d of %d units free for those above", level, reserve, limit)
	}
	return ""
}

// Refusals are the errors of a rule at one resource: that of its limit, and one for each level.
type Refusals struct {
	limit *core.BlockError
	shed  [levels]*core.BlockError
}

// NewRefusals returns the errors beside b, that of the limit. They count as b.
func NewRefusals(b *core.BlockError, rule core.Refuser, record *engine.Record) *Refusals {
	all := &Refusals{limit: b}
	for i := range all.shed {
		of := *b
		of.Shed = (core.CriticalPlus + core.Level(i)).String()
		all.shed[i] = engine.NewCounted(of, rule, record, b)
	}
	return all
}

// Of returns the error for a verdict on a call, nil if it is admitted.
func (all *Refusals) Of(v Verdict, level core.Level) *core.BlockError {
	switch v {
	case Admitted:
		return nil
	case Shed:
		return all.shed[rank(level)]
	}
	return all.limit
}
