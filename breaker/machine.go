package breaker

import (
	"math"
	"slices"
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
// which is higher than that of its state and lower than that of the next. So the number
// says all there is to know of a call that completes: lower than the present state's,
// the call belongs to one that is over, and changes nothing; equal, it counts; higher,
// it is a probe of the present state.
//
// # Who may pass without the lock
//
// word is the state and its number, gate the time before which the state lets nobody
// in. Both change under mu only, gate before word. A caller loads word first. If that
// says closed, the call passes as of that instant; whoever opens the breaker an instant
// later does so without knowing of it, as with any other call under way. If it says
// anything else, gate is at least as new, and may be that of a later state: who is
// refused by it would be refused a moment later for sure, and who is not takes the lock
// and looks again. So probes are handed out one at a time, and there are never more
// than the rule has.
//
// Time only moves forward: what happens under mu happens at the latest time that
// anybody has brought along, see advance.
type machine struct {
	word  shared.Uint64
	gate  shared.Int64
	since shared.Int64  // when the state began
	turn  shared.Uint64 // calls that asked while recovering
	terms shared.Pointer[terms]

	mu      shared.Mutex // guards changing the above, and what follows
	latest  int64
	number  uint64 // the highest given so far
	results statistics
	probes  []probe // that are waited for
	good    int     // probes of the present state that went well

	barred bool // it may not trip; its owner's, see Single
}

// probe is the lease of one: until then its place is taken.
type probe struct {
	number uint64
	until  int64
}

// terms are what a revision of a rule asks of the machine.
type terms struct {
	Rule
	resource string
	tell     func(Change) // nil if nobody wants to know
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
	m.results = newStatistics(t.Interval, t.Buckets)
	m.probes = make([]probe, 0, t.Probes)
	m.gate.Store(always)
	m.word.Store(m.number<<stateBits | uint64(Closed))
	return m
}

func (m *machine) state() (State, uint64) {
	word := m.word.Load()
	return State(word & stateMask), word >> stateBits
}

// admission is what became of a call that asked.
type admission struct {
	ok     bool
	number uint64 // for complete
	probe  bool   // to be given back if the call doesn't run after all
}

// asks reports whether the machine would let a call in as things stand. It takes
// nothing, except while recovering: whose turn it is can only be told by counting who
// asks, and those whose turn it is not must be told before they take anything of other
// rules. Then a call that may go on has the number of the state.
func (m *machine) asks(now int64) (ok bool, number uint64) {
	switch state, number := m.state(); state {
	case Closed, ForcedClosed:
		return true, 0
	case Recovering:
		if ok, known := m.draws(now); known {
			return ok, number
		}
	}
	return now >= m.gate.Load(), 0
}

// draws counts a call that asks while the machine recovers, and reports whether it is
// its turn. known is false when the recovery is over.
func (m *machine) draws(now int64) (turn, known bool) {
	step := rampStep(now-m.since.Load(), m.terms.Load().Ramp)
	if step == len(rampShares) {
		return false, false
	}
	return (m.turn.Add(1)-1)%rampShares[step] == 0, true
}

// admit decides, and hands out a probe where it takes one. The change must be told
// once what the call got is noted.
func (m *machine) admit(now int64) (admission, Change) {
	state, number := m.state()
	switch {
	case state == Closed || state == ForcedClosed:
		return admission{ok: true, number: number}, Change{}
	case state == Recovering:
		if ok, known := m.draws(now); known {
			return admission{ok: ok, number: number}, Change{}
		}
	case now < m.gate.Load():
		return admission{}, Change{}
	}
	return m.admitLocked(now)
}

// rampShares are the steps of a recovery: one call of so many passes.
var rampShares = [...]uint64{100, 10, 2}

// rampStep is the step after so long, or their number when all are over.
func rampStep(after int64, ramp time.Duration) int {
	if ramp <= 0 {
		return len(rampShares)
	}
	return int(min(max(0, after/int64(ramp)), int64(len(rampShares))))
}

// admitLocked is admit for who found the gate open. Who is refused leaves nothing, not
// even their time.
func (m *machine) admitLocked(now int64) (admission, Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var change Change
	now = max(m.latest, now)
	state, number := m.state()
	if state == Recovering {
		if ok, known := m.draws(now); known {
			return admission{ok: ok, number: number}, change
		}
		m.advance(now)
		change = m.enter(Closed, now, 0)
		state, number = m.state()
	}
	switch {
	case state == Closed || state == ForcedClosed:
		return admission{ok: true, number: number}, change
	case now < m.gate.Load():
		return admission{}, change
	}
	m.advance(now)
	if state == Open {
		change = m.enter(HalfOpen, now, 0)
	}
	t := m.terms.Load()
	m.probes = slices.DeleteFunc(m.probes, func(p probe) bool { return now >= p.until })
	if len(m.probes) >= max(1, t.Probes-m.good) {
		m.shut() // the rule has fewer probes by now
		return admission{}, change
	}
	m.number++
	m.probes = append(m.probes, probe{m.number, now + int64(t.ProbeTimeout)})
	m.shut()
	return admission{ok: true, number: m.number, probe: true}, change
}

// shut sets the gate of the half-open state: shut while all probes are out, until the
// first of them is no longer waited for.
func (m *machine) shut() {
	if len(m.probes) < max(1, m.terms.Load().Probes-m.good) {
		m.gate.Store(always)
		return
	}
	first := int64(never)
	for _, p := range m.probes {
		first = min(first, p.until)
	}
	m.gate.Store(first)
}

// holds reports whether what a call got is still good: its state is still the
// present one, and it is waited for.
func (m *machine) holds(number uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, present := m.state()
	if number != present {
		return number > present && slices.ContainsFunc(m.probes, func(p probe) bool { return p.number == number })
	}
	return state == Closed || state == ForcedClosed || state == Recovering
}

// giveBack takes back the probe of a call that doesn't run: its place is free at once.
// The state stays as it is, so that calls which are refused elsewhere, however many,
// change it once.
func (m *machine) giveBack(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(number)
}

// drop stops waiting for a probe.
func (m *machine) drop(number uint64) {
	if state, present := m.state(); state != HalfOpen || number <= present {
		return
	}
	m.probes = slices.DeleteFunc(m.probes, func(p probe) bool { return p.number == number })
	m.shut()
}

// countClosed is complete for a call that leaves the breaker closed, as nearly all do: it
// has no change to make room for. It reports false, having counted nothing, if the state
// is another or the breaker may trip.
func (m *machine) countClosed(number uint64, now int64, bad bool) bool {
	if bad {
		return false
	}
	m.mu.Lock()
	state, present := m.state()
	ok := state == Closed && number == present && m.results.good(now)
	if ok {
		m.results.add(m.advance(now), false)
	}
	m.mu.Unlock()
	return ok
}

// complete counts the end of a call, unless the state that let it in is over. A probe
// that is no longer waited for still counts.
func (m *machine) complete(number uint64, now int64, bad bool) Change {
	if state, present := m.state(); number < present || state == ForcedClosed {
		return Change{} // and states only become newer
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.advance(now)
	state, present := m.state()
	t := m.terms.Load()
	switch {
	case number < present:
	case state == Closed || state == Recovering:
		all := m.results.add(now, bad)
		if value, trips := t.trips(all); trips && !m.barred {
			return m.enter(Open, now, value)
		}
	case state == HalfOpen && bad:
		return m.enter(Open, now, 1)
	case state == HalfOpen:
		if m.good++; m.good < t.Probes {
			m.drop(number)
			return Change{}
		}
		if t.Ramp > 0 {
			return m.enter(Recovering, now, 0)
		}
		return m.enter(Closed, now, 0)
	}
	return Change{}
}

// trips reports whether so many bad calls open the breaker, and what was measured. It
// divides, since a quotient such as 7/100 is the same number as the threshold 0.07;
// a product may be a hair off.
func (t *terms) trips(all tally) (value float64, trips bool) {
	if all.bad == 0 || all.calls < int64(t.MinCalls) {
		return 0, false
	}
	value = float64(all.bad)
	if t.Strategy != ErrorCount {
		value /= float64(all.calls)
	}
	return value, value >= t.Threshold
}

// bad reports whether a call that ended counts against the resource.
func (t *terms) bad(rt time.Duration, failed bool) bool {
	if t.Strategy == SlowRatio {
		return rt > t.SlowRT
	}
	return failed
}

// force makes the breaker do something by hand, or lets go of it: one that was forced
// open lets probes through next, one that was forced closed begins to count.
func (m *machine) force(f Force, now int64) Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.advance(now)
	state, _ := m.state()
	switch {
	case f == ForceOpen && state != ForcedOpen:
		return m.enter(ForcedOpen, now, 0)
	case f == ForceClosed && state != ForcedClosed:
		return m.enter(ForcedClosed, now, 0)
	case f == NotForced && state == ForcedOpen:
		change := m.enter(Open, now, 0)
		m.gate.Store(always)
		return change
	case f == NotForced && state == ForcedClosed:
		return m.enter(Closed, now, 0)
	}
	return Change{}
}

// enter begins a state. The caller holds mu.
func (m *machine) enter(to State, now int64, value float64) Change {
	from, _ := m.state()
	t := m.terms.Load()
	m.number++
	m.probes, m.good = m.probes[:0], 0
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

// advance returns the latest time that anybody has brought along. It is the only
// writer of latest. The caller holds mu.
func (m *machine) advance(now int64) int64 {
	m.latest = max(m.latest, now)
	return m.latest
}

// adopt goes on under another revision of the rule. The state stays, and a pause that
// it is in takes as long as the new rule says.
func (m *machine) adopt(t *terms, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.advance(now)
	old := m.terms.Load()
	switch {
	case old.Strategy != t.Strategy || old.SlowRT != t.SlowRT: // another thing was counted
		m.results = newStatistics(t.Interval, t.Buckets)
	case old.Interval != t.Interval || old.Buckets != t.Buckets:
		m.results = m.results.reshaped(t.Interval, t.Buckets, now)
	}
	m.probes = slices.Grow(m.probes, max(0, t.Probes-len(m.probes)))
	m.terms.Store(t)
	switch state, _ := m.state(); state {
	case Open:
		if m.gate.Load() != always { // it was let go of by hand
			m.gate.Store(m.since.Load() + int64(t.Recovery))
		}
	case HalfOpen:
		m.shut()
	}
}

// idle reports whether the breaker can be forgotten if its resource is not in use: it
// remembers nothing, or would let the next call in anyway.
func (m *machine) idle(now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch state, _ := m.state(); state {
	case Closed:
		return m.results.at(now) == tally{}
	case ForcedOpen, ForcedClosed:
		return false
	}
	return now >= m.gate.Load()
}

// retryAfter is how long until somebody is let in, 0 if that can't be told.
func (m *machine) retryAfter(now int64) time.Duration {
	if gate := m.gate.Load(); gate > now && gate != never {
		return time.Duration(gate - now)
	}
	return 0
}
