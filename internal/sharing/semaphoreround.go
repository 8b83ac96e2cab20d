package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file sends a semaphore's commands, applies the replies, and decides for the waiting calls.

func (s *Semaphore) postLocked(now int64) bool {
	if s.posted || !s.canPostLocked(now) || !s.dueLocked(now) {
		return false
	}
	s.posted = s.m.post(s.shard(), s, now, unlessAwaited(s.waiters, now))
	return s.posted
}

func (s *Semaphore) dueLocked(now int64) bool {
	return len(s.waiters) > 0 || s.demand.short > 0 || now >= s.demand.idleAt ||
		s.renewsLocked() && now >= s.round.renewAt
}

// renewsLocked reports whether the member must renew its permits before they expire at the store.
func (s *Semaphore) renewsLocked() bool {
	return s.permits.good.Load() > 0 || s.permits.inUse.InUse() > 0
}

func (s *Semaphore) scheduleLocked(now int64) {
	at := s.demand.idleAt
	if s.renewsLocked() {
		at = min(at, max(s.round.renewAt, now+int64(time.Millisecond)))
	}
	if s.inFlight || s.posted || s.gone || at == never {
		s.m.unplan(&s.task)
		return
	}
	if s.unreachableLocked() {
		at = max(at, now+idlePermits)
	}
	s.m.plan(&s.task, at)
}

func (s *Semaphore) turn(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postLocked(now) {
		s.scheduleLocked(now)
	}
}

func (s *Semaphore) command(now int64) store.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted = false
	if s.inFlight {
		return nil
	}
	used := s.permits.inUse.InUse()
	if now >= s.demand.idleAt {
		used, s.demand.idleAt = s.permits.giveUp(), never
	}
	p := s.positionLocked()
	p.used = used
	c := &store.Permits{Limit: p.limit, Claim: used, Expiry: s.cfg.Expiry}
	c.Key = s.key
	c.Need, c.Want = s.demand.ask(s.waitingLocked(), p)
	s.attendLocked(now)
	c.Caller = s.m.caller()
	s.inFlight = true
	s.stats.Requests++
	return c
}

func (s *Semaphore) answered(command store.Command, sent, received int64, err error) {
	if s.apply(command.(*store.Permits), sent, received, err) {
		s.m.logBroken(s.key, err)
	}
}

// apply applies a reply, or records that there is none, and reports whether the key turned out to
// be unusable.
func (s *Semaphore) apply(c *store.Permits, sent, received int64, err error) (broke bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = false
	if err != nil {
		broke = s.broken.note(err, received)
		s.round.failed(c, received)
		s.failAllLocked()
		s.attendLocked(received)
		s.scheduleLocked(received)
		return broke
	}
	s.broken = broken{}
	good := s.round.replied(c, received)
	if limit := s.limitLocked(); limit < c.Limit { // it was lowered meanwhile: ask the store again
		good, s.round.renewAt = min(good, limit), received
	}
	s.permits.good.Store(good) // before expires: see permits.take
	s.permits.expires.Store(sent + atLeast(c.Expiry) - s.m.lag)
	s.demand.fullUntil = 0
	s.serveLocked(received)
	if missing := c.Need - c.Claim; missing > 0 && good < c.Need {
		s.demand.full(received, s.m.chance)
		s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool {
			if n := x.need.Units; n >= missing || n > s.positionLocked().free() {
				x.decideLocked(false)
			}
			return x.decided // the rest ask again
		})
	}
	s.attendLocked(received)
	s.postLocked(received)
	s.scheduleLocked(received)
	if s.gone {
		s.handBackLocked(received)
	}
	return false
}

// serveLocked gives the available permits to waiting calls.
func (s *Semaphore) serveLocked(now int64) {
	s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool {
		if s.permits.take(0, now, x.need.Units) {
			x.decideLocked(true)
		}
		return x.decided
	})
}

// failAllLocked decides on all waiting calls: the store didn't answer.
func (s *Semaphore) failAllLocked() {
	for _, x := range s.waiters {
		s.fallBackLocked(x)
	}
	s.waiters = nil
}

func (s *Semaphore) fallBackLocked(x *waiter) {
	x.decideLocked(s.permits.takeWithin(x.need.Units, s.fallbackLimitLocked()))
}

func (s *Semaphore) enter(x *waiter, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := s.answerLocked(0, now, x.need.Units, true); {
	case a == Fits:
		x.decideLocked(true)
	case a == Refuses:
		s.stats.Refused++
		x.decideLocked(false)
	case !s.m.mayAsk(s.cfg.Value, now):
		s.fallBackLocked(x)
		return
	default:
		s.stats.Waited++
		s.waiters = append(s.waiters, x)
		s.attendLocked(now)
	}
	if s.unreachableLocked() {
		s.demand.short = 1 // enough to see whether the store is back
	}
	s.postLocked(now)
}

func (s *Semaphore) expire(x *waiter, _ int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.withdrawLocked(x) {
		s.fallBackLocked(x)
	}
}

func (s *Semaphore) giveBack(n *Need) { s.Release(0, n.Units) }

// settle is for limits that a Late may have.
func (s *Semaphore) settle(*Need, int64, int64) {}

// drop renews the permits at once: their expiry is unknown, so no call gets one before the store
// has answered.
func (s *Semaphore) drop(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permits.expires.Store(min(now, s.permits.expires.Load()))
	s.round.renewAt = now
	s.scheduleLocked(now)
}

// leave gives back all permits except those of running calls.
func (s *Semaphore) leave(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failAllLocked()
	s.gone = true
	s.handBackLocked(now)
}

// handBackLocked sends a command if the member holds spare permits. If one is in flight, its reply
// does so.
func (s *Semaphore) handBackLocked(now int64) {
	if max(s.permits.good.Load(), s.round.held) > s.permits.inUse.InUse() && !s.posted && !s.inFlight {
		s.demand.idleAt = now
		s.permits.peak.Store(0)
		s.posted = s.m.post(s.shard(), s, now, immediately)
	}
}
