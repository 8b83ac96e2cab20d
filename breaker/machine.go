package breaker

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// machine is the state of one breaker. It survives the revisions of its rule, and uses the terms of
// the latest. Safe for concurrent use.
//
// # Numbers
//
// One counter numbers states and probes, in the order in which they begin. An ordinary call carries
// the number of the state that admitted it. A probe has its own number, higher than its state's and
// lower than the next state's. So the number of a completing call classifies it: if it is lower than
// the current state's, the call belongs to an earlier state and changes nothing; if equal, it
// counts; if higher, it is a probe of the current state.
//
// # Which calls may pass without the lock
//
// word is the state and its number, gate the time before which the state admits no call. Both change
// only under mu, gate before word. A caller loads word first. If it says closed, the call passes as
// of that instant; a goroutine that opens the breaker an instant later doesn't see the call, like
// any other call under way. Otherwise gate is at least as new, and may belong to a later state: a
// call that it refuses would certainly be refused a moment later, and any other call takes the lock
// and looks again. So probes are handed out one at a time, and there are never more than the rule
// allows.
//
// A call that succeeds while the breaker is closed doesn't take the lock either; see goodTally.
//
// Time only moves forward: changes under mu happen at the latest time of any call that passed; see
// advanceLocked.
type machine struct {
	word  shared.Uint64
	gate  shared.Int64
	since shared.Int64  // start of the state
	turn  shared.Uint64 // calls that asked while recovering
	terms shared.Pointer[terms]
	tally shared.Pointer[goodTally] // nil until one is needed

	mu      shared.Mutex // guards the changes of the fields above, and the fields below; see lock
	latest  int64
	number  uint64 // the highest so far
	results statistics
	probes  []probe // not timed out
	good    int     // probes of the current state that succeeded
	neutral int64   // neutral calls of the current state
	cause   cause   // why the current state began
	trip    *Trip   // the counts that opened it last, nil while it is closed

	barred bool // it must not trip; set by its owner; see Single
}

// The word is the state's number and the state.
const (
	stateBits = 3
	stateMask = 1<<stateBits - 1
)

const (
	always = math.MinInt64 // an open gate
	never  = math.MaxInt64 // a gate that stays shut
)

func newMachine(t *terms) *machine {
	m := &machine{latest: math.MinInt64, number: 1}
	m.terms.Store(t)
	m.results = newStatistics(&t.Rule)
	m.probes = make([]probe, 0, t.Probes)
	m.gate.Store(always)
	m.word.Store(m.number<<stateBits | uint64(Closed))
	return m
}

func (m *machine) state() (State, uint64) {
	word := m.word.Load()
	return State(word & stateMask), word >> stateBits
}

// enterLocked begins a state.
func (m *machine) enterLocked(to State, now int64, value float64) Change {
	from, _ := m.state()
	t := m.terms.Load()
	m.number++
	m.cause = cause{from, value, t}
	switch {
	case to == Open && (from == Closed || from == Recovering):
		sum := m.results.at(now)
		m.trip = &Trip{time.Unix(0, now).UTC(), value, sum.calls, sum.bad}
	case to == Closed || to == ForcedOpen || to == ForcedClosed:
		m.trip = nil
	}
	m.probes, m.good, m.neutral = m.probes[:0], 0, 0
	m.results.reset()
	m.since.Store(now)
	m.turn.Store(0)
	switch to {
	case Open:
		m.gate.Store(now + int64(t.Recovery))
	case ForcedOpen:
		m.gate.Store(never)
	default:
		m.gate.Store(always)
	}
	m.word.Store(m.number<<stateBits | uint64(to))
	return Change{
		Rule: t.ID, Resource: t.resource, From: from, To: to, Value: value,
		At: time.Unix(0, now), Number: m.number, of: t,
	}
}

// advanceLocked returns the latest time of any call that passed. It is the only writer of latest.
func (m *machine) advanceLocked(now int64) int64 {
	m.latest = max(m.latest, now)
	return m.latest
}
