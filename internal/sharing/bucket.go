package sharing

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
)

// BucketConfig configures a [Bucket].
type BucketConfig struct {
	Interval  time.Duration // 1 ms to 24 h
	Threshold float64       // units that it gains per interval, more than 0
	Burst     int64         // units that it holds beyond the one that is due; it gains them in Timeout or more
	Value     bool          // the bucket is of a single value, see Config.ValueCalls
	Costs     bool          // see ThrottleConfig
	cluster.Rule
}

// Bucket is a token bucket of all members: in every interval they admit at most Burst + 1 units and as
// many as it gains in that time. It is safe for concurrent use, and its methods don't wait; see
// [Window]. A lease is a run of turns as of a [Throttle], but a call uses its turn at once, and
// earlier by at most slack, the time in which the bucket gains its burst. Unused turns are lost when
// their time has passed.
//
// # Why no interval is over the limit
//
// Each unit has a turn of its own in the store's time, a spacing after the one before, and is used in
// the slack before it: not earlier, counted from the arrival of the reply, and not later, counted from
// the sending of the command. So the units used from a to b have their turns from a to b + slack,
// which are at most Burst + 1 and those of b - a. Leases needn't come back for that; lost, late and
// repeated commands lose turns.
//
// A reply takes some time, in which turns of a full bucket would pass. So it stays full for hold, about
// two round trips: the first call may use its turn until then. For that long the others may find it
// short of what it gains in that time.
//
// Its mutex guards all fields.
type Bucket struct {
	tokens   tokens
	demand   turnDemand
	round    bucketRound
	fallback bucketFallback

	base
	cfg   BucketConfig
	unit  float64 // nanoseconds in which the bucket gains a unit
	stats Stats
}

// Bucket returns the token bucket of a key. All users of a key share it; the latest configuration
// holds.
func (m *Member) Bucket(key string, cfg BucketConfig) (*Bucket, error) {
	switch {
	case cfg.Interval < time.Millisecond || cfg.Interval > 24*time.Hour:
		return nil, fmt.Errorf("cluster: interval %v is out of range: use 1ms to 24h", cfg.Interval)
	case !validThreshold(cfg.Threshold) || cfg.Burst < 0:
		return nil, errThreshold
	case cfg.Threshold == 0:
		return nil, errors.New("cluster: a bucket with threshold 0 admits nothing: use a Window")
	}
	key = m.Key("bucket", key)
	shard := m.find(key)
	t, ok := limitOf(m, key, func() *Bucket {
		t := &Bucket{base: base{m: m, place: place{key: key}}}
		t.round.full, t.fallback.full, t.tokens.lag = longAgo, longAgo, m.lag
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
	t.reshapeLocked()
	return t, nil
}

// reshapeLocked follows the configuration and the number of members. A lease of another rate is
// lost: the store has turns at the new rate for its units.
func (t *Bucket) reshapeLocked() {
	unit := float64(t.cfg.Interval) / t.m.ofAll(t.cfg.Threshold, t.cfg.Scope)
	if t.unit != 0 && t.unit != unit {
		now := t.m.clock.Now()
		t.tokens.drop()
		t.round.full = rescaled(t.round.full, now, unit/t.unit)
		t.fallback.full = rescaled(t.fallback.full, now, unit/t.unit)
	}
	t.unit = unit
	t.tokens.spacing = 1
	if !t.cfg.Costs {
		t.tokens.spacing = max(1, int64(math.Ceil(unit)))
	}
	size := t.turnsLocked(t.sizeLocked())
	t.tokens.slack = times(size, t.tokens.spacing) - t.tokens.spacing
}

// rescaled returns when a bucket will be full that is short of as many units at another rate.
func rescaled(full, now int64, by float64) int64 {
	if full <= now {
		return full
	}
	return now + int64(min(math.Ceil(float64(full-now)*by), float64(mostTurns)))
}

// sizeLocked returns the units that the bucket holds.
func (t *Bucket) sizeLocked() int64 {
	return int64(t.m.ofAll(float64(t.cfg.Burst), t.cfg.Scope)) + 1
}

// turnsLocked returns the number of turns that n units take.
func (t *Bucket) turnsLocked(n int64) int64 {
	if !t.cfg.Costs {
		return n
	}
	return int64(math.Ceil(min(float64(n)*t.unit, float64(mostTurns))))
}

// Timeout is the longest that a call waits for the store.
func (t *Bucket) Timeout() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cfg.Timeout
}

// Ask returns the answer of TryTake, but takes nothing. It counts a refused call; a call refused
// without the store may trigger a probe of the store.
func (t *Bucket) Ask(now, n int64) Answer {
	t.mu.Lock()
	n = t.turnsLocked(n)
	a := t.lookLocked(now, n)
	post := false
	if a == Refuses {
		t.stats.Refused++
		post = t.unreachableLocked() && !t.refusesLocked(now, n) && t.askForLocked(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return a
}

// Look is Ask without side effects: it counts no refused call, and asks the store for nothing.
func (t *Bucket) Look(now, n int64) Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lookLocked(now, t.turnsLocked(n))
}

// TryTake takes n units, if the member has them. If it has too few, the member fetches more. The token
// is for Cancel.
func (t *Bucket) TryTake(now, n int64) (token int64, ok bool) {
	t.mu.Lock()
	n = t.turnsLocked(n)
	post := false
	switch token, ok = t.takeLocked(now, n); {
	case ok:
		if t.runsLowLocked(now) {
			t.demand.short++
			post = t.postLocked(now)
		}
	case t.refusesLocked(now, n):
		t.stats.Refused++
	default:
		if t.unreachableLocked() {
			ok = t.fallbackLocked(now, n, true)
		}
		post = t.askForLocked(now, n)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
	return token, ok
}

// Cancel gives n units of a token back to the lease, and returns the token of the others. Units that
// were given without the store don't come back.
func (t *Bucket) Cancel(token, n int64) (others int64) {
	if token == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	turns := n
	if t.cfg.Costs {
		turns = int64(float64(n) * t.unit) // rounded down: the others take the rest
	}
	if turns < 1 {
		return token
	}
	return t.tokens.giveBack(t.m.clock.Now(), token, turns)
}

// Charge counts n units that a call has used beyond those it got: they come out of the lease, and
// the store's next turns.
func (t *Bucket) Charge(now, n int64) {
	t.mu.Lock()
	n = t.turnsLocked(n)
	n -= t.tokens.drain(now, n)
	post := false
	if t.unreachableLocked() {
		t.chargeFallbackLocked(now, n)
	} else if n > 0 {
		t.round.debt = min(t.round.debt+n, mostTurns/t.tokens.spacing)
		post = t.postLocked(now)
	}
	t.mu.Unlock()
	if post {
		t.m.flush(false)
	}
}

// RetryAfter returns the time after which n units are likely to fit; false if that depends on when
// the store is back, or if the bucket never holds so many.
func (t *Bucket) RetryAfter(now, n int64) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = t.turnsLocked(n)
	if t.tooManyLocked(n) {
		return 0, false
	}
	at := t.nextLocked(now, n)
	if t.unreachableLocked() {
		switch t.cfg.OnFailure {
		case cluster.Open:
			return 0, true
		case cluster.Closed:
			return 0, false
		}
		return until(t.fallbackNextLocked(now, n), now), true
	}
	return until(at+2*max(0, t.round.full-now)/(drift-1), now), true // full is at the earliest
}

// Left returns the units on the lease, and the size of the bucket of all members.
func (t *Bucket) Left(now int64) (left, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unitsLocked(t.tokens.left(now)), t.sizeLocked()
}

// Share returns the units in the member's own bucket while the store is unreachable, and the size of
// that bucket; ok is false otherwise, or if the rule has another onFailure.
func (t *Bucket) Share(now int64) (left, size float64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unreachableLocked() || t.cfg.OnFailure != cluster.Local {
		return 0, 0, false
	}
	gap := float64(t.gapLocked()) * float64(t.turnsLocked(1))
	full := float64(t.shareLocked())
	return max(0, full-float64(t.fallbackFullLocked(now)-now)) / gap, full / gap, true
}

// Stats returns the bucket's counters.
func (t *Bucket) Stats() Stats {
	now := t.m.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.stats
	f.Leased, f.Unreachable, f.Why = t.unitsLocked(t.tokens.left(now)), t.unreachableLocked(), t.broken.why(t.shard())
	f.Limit = t.sizeLocked()
	return f
}

// unitsLocked returns the number of whole units that turns are for.
func (t *Bucket) unitsLocked(turns int64) int64 {
	if !t.cfg.Costs {
		return turns
	}
	return int64(float64(turns) / t.unit)
}

// Idle reports whether the bucket can be forgotten: what it has on lease expires unused.
func (t *Bucket) Idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.inFlight && len(t.waiters) == 0 && t.round.debt == 0 && now >= t.fallback.full
}

func (t *Bucket) takeLocked(now, n int64) (token int64, ok bool) {
	if token, ok = t.tokens.take(now, n); ok {
		t.demand.wanted.units += n
	}
	return token, ok
}

func (t *Bucket) lookLocked(now, n int64) Answer {
	if t.tokens.fits(now, n) {
		return Fits
	}
	switch {
	case t.refusesLocked(now, n):
		return Refuses
	case t.unreachableLocked():
		if t.fallbackLocked(now, n, false) {
			return Fits
		}
		return Refuses
	}
	return NeedsMore
}

// tooManyLocked reports whether the bucket never holds n units.
func (t *Bucket) tooManyLocked(n int64) bool {
	return times(n-1, t.tokens.spacing) > t.tokens.slack
}

// refusesLocked reports whether the store has too few units: those on lease don't suffice, and it
// gains the others too late.
func (t *Bucket) refusesLocked(now, n int64) bool {
	return t.tooManyLocked(n) || t.nextLocked(now, n) > now
}

// nextLocked returns the earliest time at which a call of n units may run, by the member's
// knowledge.
func (t *Bucket) nextLocked(now, n int64) int64 {
	if at, ok := t.tokens.fitsAt(now, n); ok {
		return at
	}
	return t.round.full + times(n-t.tokens.left(now)-1, t.tokens.spacing) - t.tokens.slack
}

// runsLowLocked reports whether less than half of what is leased for calls to come is left, and the
// store has more.
func (t *Bucket) runsLowLocked(now int64) bool {
	t.demand.wanted.look(now, turnsAhead)
	wants, left := t.aheadLocked(), t.tokens.left(now)
	return 2*left < wants && !t.inFlight && !t.unreachableLocked() && !t.refusesLocked(now, left+1)
}

// askForLocked records that a call has too few units, and reports whether a flush may send a command
// for it.
func (t *Bucket) askForLocked(now, n int64) bool {
	if t.unreachableLocked() {
		t.demand.short = 0 // all calls until now have been decided
	}
	t.demand.short += n
	return t.m.mayAsk(t.cfg.Value, now) && t.postLocked(now)
}
