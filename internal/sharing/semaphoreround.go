package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// This file is a semaphore's round: when a command is sent, what it asks for, what becomes of the reply, and of
// the calls that wait for it. All but turn, command, answered, heard and the methods of Limit and handled need mu.

func (s *Semaphore) want(now int64) bool {
	if s.posted || !s.canPost(now) || !s.due(now) {
		return false
	}
	s.posted = s.m.post(s.shard(), s, now, unlessAwaited(s.waiters, now))
	return s.posted
}

func (s *Semaphore) due(now int64) bool {
	return len(s.waiters) > 0 || s.short > 0 || now >= s.idleAt || s.renews() && now >= s.renewAt
}

// renews reports whether the store has to hear of the member before its permits expire there.
func (s *Semaphore) renews() bool { return s.permits.good.Load() > 0 || s.permits.inUse.InUse() > 0 }

func (s *Semaphore) schedule(now int64) {
	at := s.idleAt
	if s.renews() {
		at = min(at, max(s.renewAt, now+int64(time.Millisecond)))
	}
	if s.inFlight || s.posted || s.gone || at == never {
		s.m.unplan(&s.task)
		return
	}
	if s.away() {
		at = max(at, now+idlePermits)
	}
	s.m.plan(&s.task, at)
}

func (s *Semaphore) turn(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.want(now) {
		s.schedule(now)
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
	if now >= s.idleAt {
		used, s.idleAt = s.permits.giveUp(), never
	}
	good := s.permits.good.Load()
	c := &store.Permits{Outcome: store.Outcome{Key: s.key}, Limit: s.limit(), Claim: used, Need: used, Want: max(used, good), Expiry: s.cfg.Expiry}
	if len(s.waiters) > 0 || s.short > 0 {
		c.Need = used + 1 // of several calls, one may fit
		if len(s.waiters) > 0 {
			c.Need = used + s.waiters[0].need.Units
		}
		want := used + s.short
		for _, x := range s.waiters {
			want += x.need.Units
		}
		if s.limit() >= 2*s.active { // some more, for the next calls
			want += (want + 3) / 4
		}
		c.Want = max(c.Want, c.Need, want)
	}
	s.short = 0
	s.mind(now)
	c.Caller = s.m.caller()
	s.inFlight = true
	s.figures.Requests++
	return c
}

func (s *Semaphore) answered(command store.Command, sent, received int64, err error) {
	if s.heard(command.(*store.Permits), sent, received, err) {
		s.m.tellBroken(s.key, err)
	}
}

// heard is answered, and reports whether the key has turned out to be no semaphore's.
func (s *Semaphore) heard(c *store.Permits, sent, received int64, err error) (broke bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = false
	s.renewAt = received + int64(s.cfg.Expiry)/3
	if err != nil {
		broke = s.broken.hear(err, received)
		s.renewAt = received + int64(s.cfg.Expiry)/8
		s.failAll()
		s.mind(received)
		s.schedule(received)
		return broke
	}
	s.broken = broken{}
	s.total, s.held = c.Reply.Total, c.Reply.Held
	s.active = max(1, c.Reply.Active)
	good := c.Reply.Held
	if c.Reply.Total > c.Limit { // some are in use beyond the limit: as they come back, all members come down to their shares
		good = min(good, c.Limit/s.active)
	}
	s.permits.good.Store(good) // before expires: see permits.take
	s.permits.expires.Store(sent + shorter(s.cfg.Expiry) - s.m.lag)
	s.refusedUntil = 0
	s.serve(received)
	if lacked := c.Need - c.Claim; lacked > 0 && good < c.Need {
		s.refusedUntil = received + fullFor/2 + s.m.chance(fullFor)
		s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool {
			if n := x.need.Units; n >= lacked || n > s.free() {
				x.decideLocked(false)
			}
			return x.decided // the others ask again
		})
	}
	s.mind(received)
	s.want(received)
	s.schedule(received)
	if s.gone {
		s.handBack(received)
	}
	return false
}

// serve gives the available permits to calls that wait.
func (s *Semaphore) serve(now int64) {
	s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool {
		if s.permits.take(0, now, x.need.Units) {
			x.decideLocked(true)
		}
		return x.decided
	})
}

// failAll decides for all calls that wait: the store didn't answer.
func (s *Semaphore) failAll() {
	for _, x := range s.waiters {
		s.decideAway(x)
	}
	s.waiters = nil
}

func (s *Semaphore) decideAway(x *waiter) {
	x.decideLocked(s.permits.takeWithin(x.need.Units, s.limitAway()))
}

func (s *Semaphore) enter(x *waiter, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := s.answer(0, now, x.need.Units, true); {
	case a == Fits:
		x.decideLocked(true)
	case a == Refuses:
		s.figures.Refused++
		x.decideLocked(false)
	case !s.m.mayAsk(s.cfg.Value, now):
		s.decideAway(x)
		return
	default:
		s.figures.Waited++
		s.waiters = append(s.waiters, x)
		s.mind(now)
	}
	if s.away() {
		s.short = 1 // enough to see whether the store is back
	}
	s.want(now)
}

func (s *Semaphore) expire(x *waiter, _ int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.withdraw(x) {
		s.decideAway(x)
	}
}

func (s *Semaphore) giveBack(n *Need) { s.Release(0, n.Units) }

// drop renews the permits immediately: it is no longer known until when they are good, so no call gets one before the
// store has answered.
func (s *Semaphore) drop(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permits.expires.Store(min(now, s.permits.expires.Load()))
	s.renewAt = now
	s.schedule(now)
}

// leave gives all permits back except those of calls that run.
func (s *Semaphore) leave(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failAll()
	s.gone = true
	s.handBack(now)
}

// handBack has the store told of what is held, if that is more than calls have; with a command on its way, its answer does.
func (s *Semaphore) handBack(now int64) {
	if max(s.permits.good.Load(), s.held) > s.permits.inUse.InUse() && !s.posted && !s.inFlight {
		s.idleAt = now
		s.permits.peak.Store(0)
		s.posted = s.m.post(s.shard(), s, now, immediately)
	}
}
