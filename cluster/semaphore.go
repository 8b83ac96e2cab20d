package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// SemaphoreConfig says which permits members share.
type SemaphoreConfig struct {
	Threshold float64 // permits at once, floored
	// Expiry is how long the permits of a member that has died are held; from 1 s to 1 min, 0 means 2 s.
	Expiry time.Duration
	Value  bool // it is for a single value, see Config.ValueCalls
	Rule
}

// Semaphore limits how many calls of all members may run at once. A member reports to the store in
// absolute numbers how many permits it holds; where the limit is large it holds some more than it
// uses, and it gives back those that it hasn't used for idlePermits. A member that is silent for
// Expiry loses its permits: one that is stopped for longer, or cut off, may find them given away
// while its calls still run. It is safe for concurrent use, and waits for nothing; see [Window].
//
// Invariant, under mu: until expires, the store counts at least held for this member. A command
// that asks for less lowers held when it is sent; one that asks for more raises it when the reply
// arrives. So used beyond held is what was admitted without the store, or before the permits were
// lost.
type Semaphore struct {
	m     *Member
	key   string
	shard *shard

	mu       sync.Mutex
	cfg      SemaphoreConfig
	task     task
	used     int64 // by calls that run
	peak     int64 // most used since permits were last given back
	held     int64
	expires  int64
	renewAt  int64
	idleAt   int64
	refused  int64 // until then, calls beyond held are refused
	active   int64
	short    int64 // permits that were missing since the last command
	waiters  []*waiter
	inFlight *Permits
	posted   bool
	left     bool
	figures  WindowFigures
}

const (
	idlePermits   = int64(100 * time.Millisecond)
	defaultExpiry = 2 * time.Second
	// fullFor is for how long on average a member refuses calls once the store had no permit. Nobody
	// knows when one comes free, and each call that asks costs a round trip.
	fullFor = int64(20 * time.Millisecond)
)

// Semaphore returns the semaphore of a key. All users of a key share one, and the latest
// configuration holds.
func (m *Member) Semaphore(key string, cfg SemaphoreConfig) (*Semaphore, error) {
	cfg.Expiry = cmp.Or(cfg.Expiry, defaultExpiry)
	switch {
	case cfg.Expiry < time.Second || cfg.Expiry > time.Minute:
		return nil, fmt.Errorf("cluster: an expiry of %v: use 1s to 1m", cfg.Expiry)
	case !validThreshold(cfg.Threshold):
		return nil, errThreshold
	}
	key = m.Key("semaphore", key)
	shard := m.shardOf(key)
	s, ok := limitOf(m, key, func() *Semaphore {
		s := &Semaphore{m: m, key: key, shard: shard, active: 1, idleAt: never}
		s.task.do = s.turn
		return s
	})
	if !ok {
		return nil, errOtherKind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg.Rule = cfg.Normalized()
	s.cfg = cfg
	return s, nil
}

// Timeout is the longest that a call waits for the store.
func (s *Semaphore) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Timeout
}

// Ask says what TryAcquire would do. It takes nothing; a call that is refused counts as such.
func (s *Semaphore) Ask(now, n int64) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.ask(now, n)
	if a == Refuses {
		s.figures.Refused++
	}
	return a
}

// Look is Ask without a trace: it doesn't count a call that is refused either.
func (s *Semaphore) Look(now, n int64) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ask(now, n)
}

func (s *Semaphore) ask(now, n int64) Answer {
	switch {
	case s.used+n <= s.good(now):
		return Fits
	case n > s.limit() || now < s.refused:
		return Refuses
	case !s.shard.away.Load():
		return Lacks
	case s.fitsAway(n):
		return Fits
	}
	return Refuses
}

// TryAcquire takes n permits if the member has them. Otherwise the member asks for more.
func (s *Semaphore) TryAcquire(now, n int64) bool {
	s.mu.Lock()
	a := s.ask(now, n)
	post := false
	switch a {
	case Fits:
		s.take(n)
	case Refuses:
		s.figures.Refused++
	}
	if a == Lacks || s.shard.away.Load() {
		s.short += n
		post = s.m.mayAsk(s.cfg.Value, now) && s.want(now)
	}
	s.mu.Unlock()
	if post {
		s.m.flush(false)
	}
	return a == Fits
}

// Release gives n permits back that TryAcquire or Fetch took.
func (s *Semaphore) Release(now, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = max(0, s.used-n)
	s.serve(now)
	if s.held > s.used && s.idleAt == never {
		s.idleAt = now + idlePermits
		s.schedule(now)
	}
}

// Figures are what the semaphore has done; Leased are permits that the member holds.
func (s *Semaphore) Figures() WindowFigures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.figures
	f.Leased, f.Active, f.Limit = s.held, s.active, s.limit()
	f.Away, f.Why = s.shard.away.Load(), s.shard.why()
	return f
}

// The methods below need mu, except those of keyed, handled and Limit.

func (s *Semaphore) limit() int64 {
	threshold := s.cfg.Threshold
	if s.cfg.Scope == PerMember {
		threshold *= float64(s.m.Members())
	}
	return int64(min(threshold, mostUnits))
}

// good is how many permits the member holds by now.
func (s *Semaphore) good(now int64) int64 {
	if now >= s.expires {
		return 0
	}
	return s.held
}

func (s *Semaphore) take(n int64) {
	s.used += n
	s.peak = max(s.peak, s.used)
}

// fitsAway reports whether n permits fit without the store.
func (s *Semaphore) fitsAway(n int64) bool {
	switch s.cfg.OnFailure {
	case Open:
		return true
	case Local:
		// A share of less than one permit counts as one: nothing could ever take less than a
		// permit.
		return s.used+n <= max(min(1, s.limit()), s.limit()/s.m.Members())
	}
	return false
}

func (s *Semaphore) want(now int64) bool {
	if s.inFlight != nil || s.posted || s.left || !s.due(now) {
		return false
	}
	s.posted = s.m.post(s.shard, s, now, unlessAwaited(s.waiters, now))
	return s.posted
}

func (s *Semaphore) due(now int64) bool {
	return len(s.waiters) > 0 || s.short > 0 || now >= s.idleAt || s.renews() && now >= s.renewAt
}

// renews reports whether the store has to hear of the member before its permits expire there.
func (s *Semaphore) renews() bool { return s.held > 0 || s.used > 0 }

func (s *Semaphore) schedule(now int64) {
	at := s.idleAt
	if s.renews() {
		at = min(at, max(s.renewAt, now+int64(time.Millisecond)))
	}
	if s.inFlight != nil || s.left || at == never {
		s.m.unplan(&s.task)
		return
	}
	if s.shard.away.Load() {
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

func (s *Semaphore) command(now int64) Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted = false
	if s.inFlight != nil {
		return nil
	}
	c := &Permits{Outcome: Outcome{Key: s.key}, Limit: s.limit(), Claim: s.used, Need: s.used, Want: s.held, Expiry: s.cfg.Expiry}
	if now >= s.idleAt {
		c.Want = max(s.used, s.peak)
		s.peak = s.used
		s.idleAt = never
		if c.Want > s.used {
			s.idleAt = now + idlePermits
		}
	}
	if len(s.waiters) > 0 || s.short > 0 {
		c.Need = s.used + max(1, s.short)
		if len(s.waiters) > 0 {
			c.Need = s.used + s.waiters[0].need.Units
		}
		want := s.used + s.short
		for _, x := range s.waiters {
			want += x.need.Units
		}
		if s.limit() >= 2*s.active { // some more, for the next calls
			want += (want + 3) / 4
		}
		c.Want = max(c.Want, c.Need, want)
		if s.idleAt == never {
			s.idleAt = now + idlePermits
		}
	}
	s.short = 0
	s.held = min(s.held, max(c.Want, c.Claim)) // what is given back must not be used
	c.Caller = s.m.caller()
	s.inFlight = c
	s.figures.Requests++
	return c
}

func (s *Semaphore) answered(command Command, sent, received int64, err error) {
	c := command.(*Permits)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = nil
	s.renewAt = received + int64(s.cfg.Expiry)/3
	if err != nil {
		s.renewAt = received + int64(s.cfg.Expiry)/8
		for _, x := range s.waiters {
			s.decideAway(x)
		}
		s.waiters = nil
		s.schedule(received)
		return
	}
	s.held, s.active = c.Reply.Held, max(1, c.Reply.Active)
	s.expires = sent + shorter(s.cfg.Expiry) - s.m.lag
	s.refused = 0
	s.serve(received)
	if c.Need > c.Claim && c.Reply.Held < c.Need {
		s.refused = received + fullFor/2 + s.m.chance(fullFor)
		for _, x := range s.waiters {
			x.decide(false)
		}
		s.waiters = nil
	}
	s.want(received)
	s.schedule(received)
}

// serve gives the available permits to calls that wait.
func (s *Semaphore) serve(now int64) {
	s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool {
		if s.used+x.need.Units <= s.good(now) {
			s.take(x.need.Units)
			x.decide(true)
		}
		return x.decided
	})
}

func (s *Semaphore) decideAway(x *waiter) {
	ok := s.fitsAway(x.need.Units)
	if ok {
		s.take(x.need.Units)
	}
	x.decide(ok)
}

func (s *Semaphore) enter(x *waiter, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := s.ask(now, x.need.Units); {
	case a == Fits:
		s.take(x.need.Units)
		x.decide(true)
	case a == Refuses:
		s.figures.Refused++
		x.decide(false)
	case !s.m.mayAsk(s.cfg.Value, now):
		s.decideAway(x)
		return
	default:
		s.figures.Waited++
		s.waiters = append(s.waiters, x)
	}
	if s.shard.away.Load() {
		s.short = 1 // enough to see whether the store is back
	}
	s.want(now)
}

func (s *Semaphore) expire(x *waiter, _ int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.decided {
		return
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(y *waiter) bool { return x == y })
	s.decideAway(x)
}

func (s *Semaphore) giveBack(n *Need) { s.Release(s.m.clock.Now(), n.Units) }

func (s *Semaphore) on() *shard { return s.shard }

// drop renews the permits immediately: it is no longer known until when they are good.
func (s *Semaphore) drop(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewAt = now
	s.schedule(now)
}

// leave gives all permits back except those of calls that run.
func (s *Semaphore) leave(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.waiters {
		s.decideAway(x)
	}
	s.waiters = nil
	s.idleAt, s.peak = now, s.used
	s.left = true
	if s.held > 0 && !s.posted && s.inFlight == nil {
		s.posted = s.m.post(s.shard, s, now, immediately)
	}
}
