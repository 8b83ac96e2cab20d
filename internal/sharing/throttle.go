package sharing

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
)

// ThrottleConfig configures a [Throttle].
type ThrottleConfig struct {
	Interval  time.Duration // 1 ms to 24 h
	Threshold float64       // turns per interval, more than 0
	Value     bool          // the throttle is of a single value, see Config.ValueCalls
	// Costs makes a turn last a nanosecond, and a unit as many turns as it takes: for units that would
	// have turns too close to each other.
	Costs bool
	cluster.Rule
}

// Throttle spaces the calls of all members: each unit has its turn, Interval / Threshold after the
// one before. It is safe for concurrent use, and its methods never wait; see [Window]. A lease is a
// run of turns, at most turnsAhead long, that the member gives to its calls; unused turns are lost.
// The rate is exact, but two calls of different members may be closer than the spacing by a round
// trip, as each member counts its turns from the arrival of the reply.
//
// Its parts are like those of a [Window]: calls take turns, demand says how many to ask for, round
// has the store's latest turn, and fallback gives turns while the store is unreachable. Its mutex
// guards all fields.
type Throttle struct {
	turns    turns
	demand   turnDemand
	round    turnRound
	fallback turnFallback

	base
	cfg   ThrottleConfig
	stats Stats
}

// Throttle returns the throttle of a key. All users of a key share it; the latest configuration
// holds.
func (m *Member) Throttle(key string, cfg ThrottleConfig) (*Throttle, error) {
	switch {
	case cfg.Interval < time.Millisecond || cfg.Interval > 24*time.Hour:
		return nil, fmt.Errorf("cluster: interval %v is out of range: use 1ms to 24h", cfg.Interval)
	case !validThreshold(cfg.Threshold):
		return nil, errThreshold
	case cfg.Threshold == 0:
		return nil, errors.New("cluster: a throttle with threshold 0 admits nothing: use a Window")
	}
	if !cfg.Costs {
		if err := cfg.CheckTurns(cfg.Threshold, cfg.Interval); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	key = m.Key("throttle", key)
	shard := m.find(key)
	t, ok := limitOf(m, key, func() *Throttle {
		t := &Throttle{base: base{m: m, place: place{key: key}}}
		t.round.last, t.fallback.last = longAgo, longAgo
		t.on.Store(shard)
		return t
	})
	if !ok {
		return nil, errOtherKind
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cfg.Rule = cfg.Normalized()
	m.waitFor(cfg.Timeout)
	t.cfg = cfg
	return t, nil
}

var errOtherKind = errors.New("cluster: the key belongs to a limit of another kind: use separate keys")

// Timeout is the longest that a call waits for the store. The wait for its turn may be longer.
func (t *Throttle) Timeout() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cfg.Timeout
}

// spacingLocked returns the time between two turns, rounded up.
func (t *Throttle) spacingLocked() int64 {
	if t.cfg.Costs {
		return 1
	}
	return int64(math.Ceil(float64(t.cfg.Interval) / t.m.ofAll(t.cfg.Threshold, t.cfg.Scope)))
}

// turnsLocked returns the number of turns that n units take.
func (t *Throttle) turnsLocked(n int64) int64 {
	if !t.cfg.Costs {
		return n
	}
	return int64(math.Ceil(min(float64(n)*float64(t.cfg.Interval)/t.m.ofAll(t.cfg.Threshold, t.cfg.Scope), float64(mostTurns))))
}

// Ask returns the answer and the wait of TryTake, but takes nothing. It counts a refused call; a
// call refused without the store may trigger a probe of the store.
func (t *Throttle) Ask(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	t.mu.Lock()
	n = t.turnsLocked(n)
	a, wait := t.lookLocked(now, n, maxWait)
	post := false
	if a == Refuses {
		t.stats.Refused++
		post = t.unreachableLocked() && !t.refusesLocked(now, n, maxWait) && t.askForLocked(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return a, wait
}

// Look is Ask without side effects: it counts no refused call, and asks the store for nothing.
func (t *Throttle) Look(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lookLocked(now, t.turnsLocked(n), maxWait)
}

// TryTake takes the turn for a call of n units, if the member has one within maxWait. If it has
// none, the member fetches more.
func (t *Throttle) TryTake(now, n int64, maxWait time.Duration) (wait time.Duration, ok bool) {
	t.mu.Lock()
	n = t.turnsLocked(n)
	post := false
	switch wait, ok = t.turns.take(now, n, maxWait, true); {
	case ok:
		t.demand.wanted.units += n
	case t.refusesLocked(now, n, maxWait):
		t.stats.Refused++
	default:
		if t.unreachableLocked() {
			wait, ok = t.fallbackTurnLocked(now, n, maxWait, true)
		}
		post = t.askForLocked(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return wait, ok
}

// Charge counts n units that a call has used beyond those it got: their turns come after all others,
// and nobody waits for them.
func (t *Throttle) Charge(now, n int64) {
	t.mu.Lock()
	n = t.turnsLocked(n)
	n -= t.turns.drain(now, n)
	post := false
	if t.unreachableLocked() {
		t.chargeFallbackLocked(now, n)
	} else {
		t.round.debt = min(t.round.debt+n, mostTurns/t.spacingLocked())
		post = t.postLocked(now)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
}

// RetryAfter returns the time after which a call is likely to get a turn within maxWait; false if
// that depends on when the store is back.
func (t *Throttle) RetryAfter(now, n int64, maxWait time.Duration) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = t.turnsLocked(n)
	at := t.nextLocked(n)
	if t.unreachableLocked() {
		switch t.cfg.OnFailure {
		case cluster.Open:
			return 0, true
		case cluster.Closed:
			return 0, false
		}
		at = t.fallbackNextLocked(n)
	}
	return max(0, until(at, now)-maxWait), true
}

// Wait returns the shortest wait for a call of n units, according to the member's own state.
func (t *Throttle) Wait(now, n int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = t.turnsLocked(n)
	if wait, ok := t.turns.take(now, n, math.MaxInt64, false); ok {
		return wait
	}
	at := t.nextLocked(n)
	if t.unreachableLocked() {
		switch t.cfg.OnFailure {
		case cluster.Open:
			return 0
		case cluster.Local:
			at = t.fallbackNextLocked(n)
		}
	}
	return until(at, now)
}

// Stats returns the throttle's counters; Leased is a number of turns.
func (t *Throttle) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.stats
	f.Leased, f.Unreachable, f.Why = t.turns.left, t.unreachableLocked(), t.broken.why(t.shard())
	return f
}

func (t *Throttle) lookLocked(now, n int64, maxWait time.Duration) (Answer, time.Duration) {
	if wait, ok := t.turns.take(now, n, maxWait, false); ok {
		return Fits, wait
	}
	switch {
	case t.refusesLocked(now, n, maxWait):
		return Refuses, 0
	case t.unreachableLocked():
		if wait, ok := t.fallbackTurnLocked(now, n, maxWait, false); ok {
			return Fits, wait
		}
		return Refuses, 0
	}
	return NeedsMore, 0
}

// refusesLocked reports whether the store's next turn is too late; turns that were given out don't
// come back.
func (t *Throttle) refusesLocked(now, n int64, maxWait time.Duration) bool {
	return t.nextLocked(n)-now > int64(maxWait)
}

// fallbackTurnLocked gives a call a turn without the store. If takes is false, it only looks.
func (t *Throttle) fallbackTurnLocked(now, n int64, maxWait time.Duration, takes bool) (time.Duration, bool) {
	return t.fallback.take(t.cfg.OnFailure, now, t.fallbackNextLocked(n), maxWait, takes)
}

// chargeFallbackLocked is Charge without the store.
func (t *Throttle) chargeFallbackLocked(now, n int64) {
	if n > 0 && t.cfg.OnFailure == cluster.Local {
		t.fallback.take(cluster.Local, now, t.fallbackNextLocked(n), math.MaxInt64, true)
	}
}

// nextLocked returns the earliest time at which a call of n units may run, by the member's
// knowledge.
func (t *Throttle) nextLocked(n int64) int64 { return t.round.next(n, t.spacingLocked()) }

// fallbackNextLocked returns the time at which a call of n units may run without the store.
func (t *Throttle) fallbackNextLocked(n int64) int64 {
	return t.fallback.next(t.round.last, times(t.m.Members(), times(n, t.spacingLocked())))
}

// askForLocked records that a call has no turn, and reports whether a flush may send a command for
// it.
func (t *Throttle) askForLocked(now, n int64) bool {
	t.demand.short += n
	return t.m.mayAsk(t.cfg.Value, now) && t.postLocked(now)
}
