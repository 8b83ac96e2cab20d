package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// ThrottleConfig says which turns members share.
type ThrottleConfig struct {
	Interval  time.Duration // from 1 ms to 24 h
	Threshold float64       // turns in an interval, more than 0
	Value     bool          // it is for a single value, see Config.ValueCalls
	Rule
}

// Throttle spaces the calls of all members: each unit has its turn, Interval / Threshold after the
// one before. A lease is some turns in a row, of at most turnsAhead, that the member gives to its
// calls; turns that no call takes are lost. The rate is exact, but two calls of different members
// may be closer than the spacing by a round trip, as each member counts its turns from when the
// reply arrived. It is safe for concurrent use, and waits for nothing; see [Window].
type Throttle struct {
	m     *Member
	key   string
	shard *shard

	mu       sync.Mutex
	cfg      ThrottleConfig
	next     int64 // when the next turn of the lease is
	left     int64 // turns of the lease
	spacing  int64 // of the lease
	last     int64 // the store gives away no turn earlier than a spacing after this
	short    int64 // units that were missing since the last command
	wanted   demand
	waiters  []*waiter
	asking   *waiter // whose need is in the latest command
	inFlight *Turn
	posted   bool
	own      int64 // the latest turn that was given without the store
	broken   broken
	figures  WindowFigures
}

const (
	turnsAhead = int64(20 * time.Millisecond)
	// mostTurns is what the units of a command are apart at most, see [Turn]. A call of more has as
	// many in the store.
	mostTurns = int64(1<<52 - 1)
	// mostSpaced is what times returns at most, some 146 years.
	mostSpaced = int64(1 << 62)
	// longAgo is when the last turn was if none is known: whatever is spaced from it has passed.
	longAgo = -mostSpaced
)

// times is n times d. A call may have so many units that an int64 can't say how far apart they are.
func times(n, d int64) int64 {
	if n > mostSpaced/max(1, d) {
		return mostSpaced
	}
	return n * d
}

// Throttle returns the throttle of a key. All users of a key share one, and the latest
// configuration holds.
func (m *Member) Throttle(key string, cfg ThrottleConfig) (*Throttle, error) {
	switch {
	case cfg.Interval < time.Millisecond || cfg.Interval > 24*time.Hour:
		return nil, fmt.Errorf("cluster: an interval of %v: use 1ms to 24h", cfg.Interval)
	case !validThreshold(cfg.Threshold):
		return nil, errThreshold
	case cfg.Threshold == 0:
		return nil, errors.New("cluster: a throttle with a threshold of 0 gives no turns: use a Window")
	}
	key = m.Key("throttle", key)
	shard := m.shardOf(key)
	t, ok := limitOf(m, key, func() *Throttle { return &Throttle{m: m, key: key, shard: shard, last: longAgo, own: longAgo} })
	if !ok {
		return nil, errOtherKind
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cfg.Rule = cfg.Normalized()
	shard.waitFor(cfg.Timeout)
	t.cfg = cfg
	return t, nil
}

var errOtherKind = errors.New("cluster: the key is that of another kind of limit: use one for each")

// Timeout is the longest that a call waits for the store. It may wait longer for its turn.
func (t *Throttle) Timeout() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cfg.Timeout
}

// spaced is the time between two units, rounded up. It needs mu.
func (t *Throttle) spaced() int64 {
	threshold := t.cfg.Threshold
	if t.cfg.Scope == PerMember {
		threshold *= float64(t.m.Members())
	}
	return int64(min(math.Ceil(float64(t.cfg.Interval)/threshold), float64(24*time.Hour)))
}

// Ask returns what TryTake would do, and the wait that it would return. It takes nothing; a call
// that is refused counts as such, and one that is refused without the store may have it asked whether it is back.
func (t *Throttle) Ask(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	t.mu.Lock()
	a, wait := t.look(now, n, maxWait)
	post := false
	if a == Refuses {
		t.figures.Refused++
		post = t.away() && !t.refuses(now, n, maxWait) && t.lacks(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return a, wait
}

// Look is Ask without a trace: it doesn't count a call that is refused either, and has nothing asked.
func (t *Throttle) Look(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.look(now, n, maxWait)
}

// TryTake takes the turn for a call of n units, if the member has one that the call need not wait
// longer than maxWait for. If it has none, it fetches more.
func (t *Throttle) TryTake(now, n int64, maxWait time.Duration) (wait time.Duration, ok bool) {
	t.mu.Lock()
	post := false
	switch wait, ok = t.turn(now, n, maxWait, true); {
	case ok:
		t.wanted.units += n
	case t.refuses(now, n, maxWait):
		t.figures.Refused++
	default:
		if t.away() {
			wait, ok = t.turnAway(now, n, maxWait, true)
		}
		post = t.lacks(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return wait, ok
}

// RetryAfter is how long after now a call may have its turn within maxWait, as far as the member knows;
// false if that depends on when the store is back.
func (t *Throttle) RetryAfter(now, n int64, maxWait time.Duration) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.last + times(n, t.spaced())
	if t.away() {
		switch t.cfg.OnFailure {
		case Open:
			return 0, true
		case Closed:
			return 0, false
		}
		at = t.nextAway(n)
	}
	return max(0, until(at, now)-maxWait), true
}

// Figures are what the throttle has done; Leased are turns.
func (t *Throttle) Figures() WindowFigures {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.figures
	f.Leased, f.Away, f.Why = t.left, t.away(), t.broken.why(t.shard)
	return f
}

// The methods below need mu, except those of keyed, handled and Limit, and what answered calls.

func (t *Throttle) look(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	if wait, ok := t.turn(now, n, maxWait, false); ok {
		return Fits, wait
	}
	switch {
	case t.refuses(now, n, maxWait):
		return Refuses, 0
	case t.away():
		if wait, ok := t.turnAway(now, n, maxWait, false); ok {
			return Fits, wait
		}
		return Refuses, 0
	}
	return Lacks, 0
}

// away reports whether the store is to be done without.
func (t *Throttle) away() bool { return t.broken.on || t.shard.away.Load() }

// turn gives a call the turn of its last unit. Turns that have passed are lost.
func (t *Throttle) turn(now, n int64, maxWait time.Duration, take bool) (wait time.Duration, ok bool) {
	if t.left > 0 && t.next < now {
		lost := min(t.left, (now-t.next+t.spacing-1)/t.spacing)
		t.next += lost * t.spacing
		t.left -= lost
	}
	at := t.next + (n-1)*t.spacing
	if n > t.left || at-now > int64(maxWait) {
		return 0, false
	}
	if take {
		t.next = at + t.spacing
		t.left -= n
	}
	return time.Duration(at - now), true
}

// refuses reports whether the store's next turn is too late: turns that were given away don't come
// back.
func (t *Throttle) refuses(now, n int64, maxWait time.Duration) bool {
	return t.last+times(n, t.spaced())-now > int64(maxWait)
}

// turnAway is turn without the store.
func (t *Throttle) turnAway(now, n int64, maxWait time.Duration, take bool) (wait time.Duration, ok bool) {
	switch t.cfg.OnFailure {
	case Open:
		return 0, true
	case Closed:
		return 0, false
	}
	at := max(now, t.nextAway(n))
	if at-now > int64(maxWait) {
		return 0, false
	}
	if take {
		t.own = at
	}
	return time.Duration(at - now), true
}

// nextAway is when a call of n units may run without the store: a member has its share of the turns.
func (t *Throttle) nextAway(n int64) int64 {
	return max(t.own, t.last) + times(t.m.Members(), times(n, t.spaced()))
}

// lacks notes that a call lacks its turn, and reports whether a flush may send a command for it.
func (t *Throttle) lacks(now, n int64) bool {
	t.short += n
	return t.m.mayAsk(t.cfg.Value, now) && t.want(now)
}

// want posts the throttle if there is something to ask for.
func (t *Throttle) want(now int64) bool {
	if t.inFlight != nil || t.posted || now < t.broken.retryAt || t.short == 0 && len(t.waiters) == 0 {
		return false
	}
	t.posted = t.m.post(t.shard, t, now, unlessAwaited(t.waiters, now))
	return t.posted
}

func (t *Throttle) command(now int64) Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posted = false
	short := t.short
	t.short = 0
	if t.inFlight != nil || short == 0 && len(t.waiters) == 0 {
		return nil
	}
	t.wanted.look(now, turnsAhead)
	spacing := t.spaced()
	c := &Turn{Outcome: Outcome{Key: t.key}, Spacing: time.Duration(spacing), Need: 1, Within: time.Duration(turnsAhead)}
	if len(t.waiters) > 0 {
		t.asking = t.waiters[0]
		c.Need, c.Within = min(t.asking.need.Units, mostTurns/spacing), t.asking.need.MaxWait
		short = 0
		for _, x := range t.waiters {
			short += x.need.Units
		}
	}
	c.Want = max(c.Need, min(max(short, t.wanted.over(turnsAhead)), turnsAhead/spacing))
	t.inFlight = c
	t.figures.Requests++
	return c
}

func (t *Throttle) answered(command Command, sent, received int64, err error) {
	c := command.(*Turn)
	if err == nil {
		t.replied(c, sent, received)
	} else if t.failed(received, err) { // no lock is held, see Window.answered
		t.m.tellBroken(t.key, err)
	}
}

// failed is answered for a command that was perhaps not executed. It reports whether the key has turned
// out to be no throttle's.
func (t *Throttle) failed(now int64, err error) (broke bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight = nil
	broke = t.broken.hear(err, now)
	t.failAll(now)
	return broke
}

// replied is answered for a command that was executed.
func (t *Throttle) replied(c *Turn, sent, received int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight, t.broken = nil, broken{}
	r := &c.Reply
	spacing := int64(c.Spacing)
	first := received + longer(r.Wait) + t.m.lag
	if r.Granted == 0 {
		t.last = max(t.last, sent+shorter(r.Wait)-times(c.Need, spacing))
	} else {
		t.last = sent + shorter(r.Wait) + times(r.Granted-c.Need, spacing)
		// What was left of the last lease is lost. The first turn counts as one, however many units
		// it is for.
		t.next, t.left, t.spacing = first, r.Granted-c.Need+1, spacing
	}
	t.serve(c, received)
	t.want(received)
}

// serve gives calls that wait their turns, and refuses those that the store has no turn for in
// time.
func (t *Throttle) serve(c *Turn, now int64) {
	if x := t.asking; c.Reply.Granted > 0 && len(t.waiters) > 0 && t.waiters[0] == x {
		t.waiters = t.waiters[1:]
		x.need.Wait = until(t.next, now)
		t.left--
		t.next += t.spacing
		t.wanted.units += c.Need
		x.decide(true)
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(x *waiter) bool {
		n, maxWait := x.need.Units, x.need.MaxWait
		if wait, ok := t.turn(now, n, maxWait, true); ok {
			x.need.Wait = wait
			t.wanted.units += n
			x.decide(true)
		} else if t.refuses(now, n, maxWait) {
			x.decide(false)
		}
		return x.decided
	})
}

func (t *Throttle) failAll(now int64) {
	for _, x := range t.waiters {
		t.decideAway(x, now)
	}
	t.waiters = nil
}

func (t *Throttle) decideAway(x *waiter, now int64) {
	wait, ok := t.turnAway(now, x.need.Units, x.need.MaxWait, true)
	x.need.Wait = wait
	x.decide(ok)
}

func (t *Throttle) enter(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, maxWait := x.need.Units, x.need.MaxWait
	wait, ok := t.turn(now, n, maxWait, true)
	switch {
	case ok:
		x.need.Wait = wait
		t.wanted.units += n
		x.decide(true)
	case t.refuses(now, n, maxWait):
		t.figures.Refused++
		x.decide(false)
	case t.away():
		t.decideAway(x, now)
		t.short += n
		t.want(now)
	case !t.m.mayAsk(t.cfg.Value, now):
		t.decideAway(x, now)
	default:
		t.figures.Waited++
		t.waiters = append(t.waiters, x)
		t.want(now)
	}
}

func (t *Throttle) expire(x *waiter, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.decided {
		return
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(y *waiter) bool { return x == y })
	t.decideAway(x, now)
}

// giveBack does nothing: the turn is lost.
func (t *Throttle) giveBack(*Need) {}

func (t *Throttle) on() *shard { return t.shard }

// drop forgets the lease, and what is known of the store's turns: its clock was set.
func (t *Throttle) drop(int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.last = 0, longAgo
}

func (t *Throttle) leave(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = 0
	t.failAll(now)
}
