package breaker

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
)

// machine is the state of one breaker. It outlives the revisions of its rule, whose
// terms it is given. It is safe for concurrent use.
//
// # Numbers
//
// One counter numbers states and probes, in the order in which they begin. A call that
// an ordinary state lets in carries the number of that state, a probe one of its own,
// which is higher than that of its state and lower than that of the next. So the number of a call
// that completes says everything: if lower than the current state's, the call belongs to a state
// that is over, and changes nothing; if equal, it counts; if higher, it is a probe of the current
// state.
//
// # Which calls may pass without the lock
//
// word is the state and its number, gate the time before which the state lets no call in. Both
// change only under mu, gate before word. A caller loads word first. If that says closed, the call
// passes as of that instant; a goroutine that opens the breaker an instant later does so without
// knowing of the call, as with any other call under way. If it says anything else, gate is at least
// as new, and may be that of a later state: a call that it refuses would certainly be refused a
// moment later, and any other call takes the lock and looks again. So probes are handed out one at
// a time, and there are never more than the rule has.
//
// A call that ends well while the breaker is closed doesn't take the lock either, see tab.
//
// Time only moves forward: what happens under mu happens at the latest time that any call has
// passed in, see advance.
type machine struct {
	word  shared.Uint64
	gate  shared.Int64
	since shared.Int64  // when the state began
	turn  shared.Uint64 // calls that asked while recovering
	terms shared.Pointer[terms]
	tab   shared.Pointer[tab] // nil until one is needed

	mu      shared.Mutex // guards changes of the above, and what follows; see lock
	latest  int64
	number  uint64 // the highest given so far
	results statistics
	probes  []probe // that are waited for
	good    int     // probes of the current state that went well
	neutral int64   // calls of the current state that said nothing
	cause   cause   // why the current state began
	trip    *Trip   // what made it open last, nil while it is closed

	barred bool // it may not trip; set by its owner, see Single
}

// The word is the state's number and the state.
const (
	stateBits = 3
	stateMask = 1<<stateBits - 1
)

const (
	always = math.MinInt64 // a gate that is open
	never  = math.MaxInt64 // one that stays shut
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

// enterLocked begins a state. The caller holds mu.
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

// advanceLocked returns the latest time that any call has passed in. It is the only writer of latest. The
// caller holds mu.
func (m *machine) advanceLocked(now int64) int64 {
	m.latest = max(m.latest, now)
	return m.latest
}
