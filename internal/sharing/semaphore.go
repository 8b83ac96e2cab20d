package sharing

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/internal/shared"
)

// SemaphoreConfig configures a [Semaphore].
type SemaphoreConfig struct {
	Threshold float64 // concurrent permits, floored
	// Expiry is the time that a dead member's permits stay held; 1 s to 1 min, 0 means 2 s.
	Expiry time.Duration
	Value  bool // the semaphore is of a single value, see Config.ValueCalls
	cluster.Rule
}

// Semaphore limits how many calls of all members run at once. It is safe for concurrent use, and
// its methods never wait; see [Window]. A member reports the absolute number of permits it holds.
// With a large limit it holds some spare ones. It gives back unused permits, one to two times
// idlePermits after their last use. A member that is silent for Expiry loses its permits: if it is
// paused for longer, or cut off, the store may grant them to others while its calls still run.
//
// Its parts are like those of a [Window]: calls take permits, demand says how many to ask for,
// round has the store's count. Its mutex guards all fields but permits and attend.
//
// Invariant: until permits.expires, the store counts at least permits.good for this member. A
// command that asks for less lowers good before it is sent; a command that asks for more raises it
// when the reply arrives. So units in use beyond good were admitted without the store, or before
// the permits were lost.
//
// A call that releases permits doesn't lock mu, unless attend is set: a call waits, or the return
// of idle permits isn't planned. It releases first and then loads attend; attendLocked sets attend
// and then looks for free permits. So one of the two sees the other.
type Semaphore struct {
	permits permits
	attend  shared.Bool
	demand  permitDemand
	round   permitRound

	base
	cfg   SemaphoreConfig
	task  task
	stats Stats
}

const (
	idlePermits   = int64(100 * time.Millisecond)
	defaultExpiry = 2 * time.Second
	// fullFor is the average time that a member refuses calls after the store had too few permits.
	fullFor = int64(20 * time.Millisecond)
)

// Semaphore returns the semaphore of a key. All users of a key share it; the latest configuration
// holds.
func (m *Member) Semaphore(key string, cfg SemaphoreConfig) (*Semaphore, error) {
	cfg.Expiry = cmp.Or(cfg.Expiry, defaultExpiry)
	switch {
	case cfg.Expiry < time.Second || cfg.Expiry > time.Minute:
		return nil, fmt.Errorf("cluster: expiry %v is out of range: use 1s to 1m", cfg.Expiry)
	case !validThreshold(cfg.Threshold):
		return nil, errThreshold
	}
	key = m.Key("semaphore", key)
	shard := m.find(key)
	s, ok := limitOf(m, key, func() *Semaphore {
		s := &Semaphore{base: base{m: m, place: place{key: key}}, demand: newPermitDemand()}
		s.round.active = 1
		s.on.Store(shard)
		s.task.do = s.turn
		return s
	})
	if !ok {
		return nil, errOtherKind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg.Rule = cfg.Normalized()
	m.waitFor(cfg.Timeout)
	lower := cfg.Threshold < s.cfg.Threshold
	s.cfg = cfg
	if lower { // the store will report what that means for this member
		s.permits.good.Store(min(s.limitLocked(), s.permits.good.Load()))
		s.round.renewAt = m.clock.Now()
		s.scheduleLocked(s.round.renewAt)
	}
	return s, nil
}

// Timeout is the longest that a call waits for the store.
func (s *Semaphore) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Timeout
}

// Ask returns the answer of TryAcquire, but takes nothing. It counts a refused call.
func (s *Semaphore) Ask(now, n int64) Answer {
	if s.permits.has(now, n) {
		return Fits
	}
	s.mu.Lock()
	a := s.answerLocked(0, now, n, false)
	post := false
	if a == Refuses {
		s.stats.Refused++
		if s.unreachableLocked() && !s.refusesLocked(now, n) {
			post = s.askForLocked(now, 1) // enough to see whether the store is back
		}
	}
	s.mu.Unlock()
	if post {
		s.m.flush(false)
	}
	return a
}

// Look is Ask without side effects: it counts no refused call, and asks the store for nothing.
func (s *Semaphore) Look(now, n int64) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answerLocked(0, now, n, false)
}

// TryAcquire takes n permits if the member has them; otherwise the member asks for more. The lane
// is as in [Window.TryAdd].
func (s *Semaphore) TryAcquire(lane uint32, now, n int64) bool {
	if s.permits.take(lane, now, n) {
		return true
	}
	s.mu.Lock()
	a := s.answerLocked(lane, now, n, true)
	post := false
	if a == Refuses {
		s.stats.Refused++
	}
	if a == NeedsMore || s.unreachableLocked() {
		post = s.askForLocked(now, n)
	}
	s.mu.Unlock()
	if post {
		s.m.flush(false)
	}
	return a == Fits
}

// TryShadow is TryAcquire for a rule in shadow mode: if the store must be asked, TryShadow decides
// by its latest reply, and takes the permits if there would be room.
func (s *Semaphore) TryShadow(lane uint32, now, n int64) bool {
	if s.TryAcquire(lane, now, n) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answerLocked(lane, now, n, true) == Fits {
		return true
	}
	limit := s.limitLocked()
	return !s.unreachableLocked() && n <= limit && s.permits.takeWithin(n, s.permits.good.Load()+s.round.room(limit))
}

// answerLocked decides on a call that wants n permits. If takes is true and they fit, the call
// takes them.
func (s *Semaphore) answerLocked(lane uint32, now, n int64, takes bool) Answer {
	p := &s.permits
	switch {
	case takes && p.take(lane, now, n), !takes && p.has(now, n):
		return Fits
	case s.refusesLocked(now, n):
		return Refuses
	case !s.unreachableLocked():
		return NeedsMore
	}
	most := s.fallbackLimitLocked()
	if takes && p.takeWithin(n, most) || !takes && p.inUse.Fits(n, most) {
		return Fits
	}
	return Refuses
}

// Release gives back n permits from TryAcquire or Fetch, on any lane.
func (s *Semaphore) Release(lane uint32, n int64) {
	s.permits.inUse.Release(lane, n)
	if !s.attend.Load() {
		return
	}
	now := s.m.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	idleAt := s.demand.idleAt
	if s.attendLocked(now); s.demand.idleAt != idleAt {
		s.scheduleLocked(now)
	}
}

// Charge makes a call hold n permits more, whatever the limit. It returns false if they are too many
// to count.
func (s *Semaphore) Charge(now, n int64) bool {
	if !s.permits.takeWithin(n, math.MaxInt64) {
		return false
	}
	s.mu.Lock()
	s.round.renewAt = min(s.round.renewAt, now) // the store must know
	post := s.postLocked(now)
	s.scheduleLocked(now)
	s.mu.Unlock()
	if post {
		s.m.flush(false)
	}
	return true
}

// Stats returns the semaphore's counters; Leased is the number of permits that the member holds.
func (s *Semaphore) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.stats
	f.Leased, f.Limit = s.permits.goodAt(s.m.clock.Now()), s.limitLocked()
	f.Unreachable, f.Why = s.unreachableLocked(), s.broken.why(s.shard())
	return f
}

// Held returns the number of permits that all members hold, and the limit. It is the store's latest
// count, or only this member's if that has expired. While the store is unreachable, it returns the
// permits in use by this member's calls, and the number the rule allows them.
func (s *Semaphore) Held() (units, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch limit = s.limitLocked(); {
	case !s.unreachableLocked() && s.m.clock.Now() >= s.permits.expires.Load():
		return s.permits.inUse.InUse(), limit
	case !s.unreachableLocked():
		return max(s.permits.good.Load(), s.round.total), limit
	case s.cfg.OnFailure == cluster.Local:
		limit = s.fallbackLimitLocked()
	case s.cfg.OnFailure == cluster.Closed:
		limit = s.permits.goodAt(s.m.clock.Now())
	}
	return s.permits.inUse.InUse(), limit
}

// askForLocked records that n permits are missing, and reports whether a flush may ask for them.
func (s *Semaphore) askForLocked(now, n int64) bool {
	s.demand.short += n
	return s.m.mayAsk(s.cfg.Value, now) && s.postLocked(now)
}

func (s *Semaphore) limitLocked() int64 {
	return int64(min(s.m.ofAll(s.cfg.Threshold, s.cfg.Scope), mostLimit))
}

// refusesLocked reports whether the store has no room for n permits, even counting the spare ones
// of this member.
func (s *Semaphore) refusesLocked(now, n int64) bool {
	return n > s.limitLocked() || s.demand.isFull(now) && n > s.positionLocked().free()
}

// positionLocked returns the input of the demand's decisions.
func (s *Semaphore) positionLocked() permitPosition {
	limit := s.limitLocked()
	return permitPosition{
		limit: limit, used: s.permits.inUse.InUse(), good: s.permits.good.Load(), room: s.round.room(limit),
		active: s.round.active,
	}
}

// fallbackLimitLocked returns the number of permits for calls while the store is unreachable.
func (s *Semaphore) fallbackLimitLocked() int64 {
	return fallbackPermits(s.cfg.OnFailure, s.limitLocked(), s.m.Members())
}

// attendLocked gives free permits to waiting calls, plans when idle permits go back, and decides
// whether calls that release permits must call it from now on.
func (s *Semaphore) attendLocked(now int64) {
	s.attend.Store(true) // earlier releases are seen here, later ones see attend
	s.serveLocked(now)
	s.demand.keep(now, func() bool { return max(s.permits.good.Load(), s.round.held) > s.permits.inUse.InUse() })
	if len(s.waiters) == 0 && s.demand.idleAt != never {
		s.attend.Store(false)
	}
}
