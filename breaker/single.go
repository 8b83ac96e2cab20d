package breaker

import "time"

// Single is a standalone breaker, for code that guards something other than a resource: package
// outlier creates one for each endpoint of a resource. Its changes are not reported to listeners. A
// call goes through Admit, and then through Complete, or GiveBack if it doesn't run.
//
// Its owner needs a lock: methods that change it must not run at the same time.
type Single struct{ machine *machine }

// Terms is a rule in the form that breakers use. All breakers of one rule share it.
type Terms struct{ terms }

// NewTerms returns the terms of a rule, which must be normalized.
func NewTerms(r Rule) *Terms { return &Terms{terms{Rule: r}} }

// NewSingle returns a closed breaker.
func NewSingle(t *Terms) Single { return Single{newMachine(&t.terms)} }

// State returns the breaker's state.
func (s Single) State() State {
	state, _ := s.machine.state()
	return state
}

// Asks reports whether the breaker would admit a call as of now.
func (s Single) Asks(now int64) bool {
	ok, _ := s.machine.asks(now)
	return ok
}

// Admit decides on a call. An admitted call gets a number to pass to the other methods. A probe
// must be given back if it doesn't run.
func (s Single) Admit(now int64) (number uint64, probe, ok bool) {
	got, _ := s.machine.admit(now)
	return got.number, got.probe, got.ok
}

// Holds reports whether a call's number is still valid.
func (s Single) Holds(number uint64) bool { return s.machine.holds(number) }

// GiveBack releases the probe of a call that doesn't run.
func (s Single) GiveBack(number uint64) { s.machine.giveBack(number) }

// Complete counts the end of a call; see [EndOf]. If mayTrip is false, a closed breaker stays
// closed, and may trip with a later call.
func (s Single) Complete(number uint64, now int64, end End, mayTrip bool) {
	m := s.machine
	if m.countGood(number, now, end) {
		return
	}
	m.barred = !mayTrip
	m.complete(number, now, end)
}

// Close closes the breaker, as if it were new.
func (s Single) Close(now int64) {
	m := s.machine
	m.lock()
	defer m.unlock()
	m.enterLocked(Closed, m.advanceLocked(now), 0)
}

// Adopt makes the breaker continue under other terms.
func (s Single) Adopt(t *Terms, now int64) { s.machine.adopt(&t.terms, now) }

// RetryAfter returns the time until a call is admitted, if known.
func (s Single) RetryAfter(now int64) (wait time.Duration, known bool) {
	return s.machine.retryAfter(now)
}

// Status returns the breaker's status. The owner fills in the fields that identify the breaker.
func (s Single) Status(now int64) Status { return s.machine.status(now) }
