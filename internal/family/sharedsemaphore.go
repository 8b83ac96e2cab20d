package family

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// sharedSemaphore limits the units in flight of calls of all members.
type sharedSemaphore struct {
	fetcher   fetcher
	unit      sharedUnit
	semaphore *sharing.Semaphore
	refusal   *core.BlockError
	away      string // explanation while the store is away
}

// NewSharedSemaphore returns the semaphore of a key, which rejects calls with refusal. The unit is
// empty for calls. Its rule has been validated; see cluster.Rule.
func NewSharedSemaphore(m *sharing.Member, key, unit string, c sharing.SemaphoreConfig, refusal *core.BlockError) Shared {
	return &sharedSemaphore{fetcher{m}, sharedUnit(unit), must(m.Semaphore(key, c)), refusal, storeAway[c.OnFailure]}
}

func (s *sharedSemaphore) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	if r, _ := inv.HeldFor(s); r != nil {
		return engine.Verdict{}
	}
	switch s.semaphore.Ask(inv.Now(), n) {
	case sharing.Fits:
		return engine.Verdict{}
	case sharing.Refuses:
		return engine.Verdict{Block: s.refusal}
	}
	return inv.Want(s.fetcher, s.want(n))
}

// Take takes units. A call that waits for another rule holds its units during the wait.
func (s *sharedSemaphore) Take(inv *engine.Invocation, n int64) engine.Verdict {
	if r, _ := inv.HeldFor(s); r != nil {
		return engine.Verdict{}
	}
	switch {
	case s.semaphore.TryAcquire(inv.Lane(), inv.Now(), n):
		s.reserve(inv, n)
		return engine.Verdict{}
	case s.refuses(inv.Now(), n):
		return engine.Verdict{Block: s.refusal}
	}
	inv.WantLater()
	return engine.Verdict{}
}

func (s *sharedSemaphore) reserve(inv *engine.Invocation, n int64) {
	inv.Reserve(engine.Reservation{Holder: s, Units: n, Token: int64(inv.Lane()), UntilExit: true})
	s.unit.settles(inv)
}

func (s *sharedSemaphore) Want(inv *engine.Invocation, n int64) {
	if r, _ := inv.HeldFor(s); r == nil {
		inv.Want(s.fetcher, s.want(n))
	}
}

// askShadow always fits: takeShadow decides, and never needs more.
func (s *sharedSemaphore) askShadow(*engine.Invocation, int64) sharing.Answer { return sharing.Fits }

func (s *sharedSemaphore) takeShadow(inv *engine.Invocation, n int64) sharing.Answer {
	if s.semaphore.TryShadow(inv.Lane(), inv.Now(), n) {
		s.reserve(inv, n)
		return sharing.Fits
	}
	return sharing.Refuses
}

func (s *sharedSemaphore) need(_ *engine.Invocation, n int64) (*sharing.Member, sharing.Need) {
	return s.fetcher.Member, sharing.Need{Limit: s.semaphore, Units: n}
}

func (s *sharedSemaphore) refuses(now, n int64) bool {
	return s.semaphore.Look(now, n) == sharing.Refuses
}

// GiveBack gives the units back when the call exits, on the lane on which it took them.
func (s *sharedSemaphore) GiveBack(r *engine.Reservation, _ int64) {
	s.semaphore.Release(uint32(r.Token), r.Units)
}

// Refund gives back units that the call doesn't need; it gives back the others when it exits.
func (s *sharedSemaphore) Refund(r *engine.Reservation, n, _ int64) {
	s.semaphore.Release(uint32(r.Token), n)
	r.Units -= n
}

// Charge makes the call hold units that it uses beyond its reservation.
func (s *sharedSemaphore) Charge(r *engine.Reservation, n, now int64) (forgiven int64) {
	if !s.semaphore.Charge(now, n) {
		return n
	}
	r.Units += n
	return 0
}

// Counts returns what the reservations of all versions of the rule have in common.
func (s *sharedSemaphore) Counts() any { return s.semaphore }

// RetryAfter is not known: it depends on calls that exit.
func (s *sharedSemaphore) RetryAfter(int64, int64) (time.Duration, bool) { return 0, false }

func (s *sharedSemaphore) want(n int64) engine.Want {
	return engine.Want{
		Limit: s.semaphore, Units: n, Holder: s, By: s.refusal, Timeout: s.semaphore.Timeout(), UntilExit: true, Unit: string(s.unit),
	}
}

// Left is not known: it limits no rate.
func (s *sharedSemaphore) Left(int64) (left, limit int64, known bool) { return 0, 0, false }

func (s *sharedSemaphore) Explain(inv *engine.Invocation, n int64, j *core.Judgement) core.Measure {
	switch s.semaphore.Look(inv.Now(), n) {
	case sharing.Refuses:
		inv.JudgeRefused(j, 0, false)
	case sharing.NeedsMore:
		j.Why = WouldAskStore
	}
	if s.semaphore.Stats().Unreachable {
		j.Why = s.away
	}
	return s.Measure(inv.Now())
}

func (s *sharedSemaphore) Measure(int64) core.Measure {
	of := s.unit.name() + " in flight, held by all members"
	if s.semaphore.Stats().Unreachable {
		of = s.unit.name() + " in flight, of this member"
	}
	held, limit := s.semaphore.Held()
	return core.Measure{Of: of, Measured: float64(held), Limit: float64(limit)}
}

func (s *sharedSemaphore) Idle(int64) bool { return s.semaphore.Idle() }

func (s *sharedSemaphore) stats() sharing.Stats { return s.semaphore.Stats() }
