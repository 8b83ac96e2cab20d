package sharing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// WindowConfig says which window members share.
type WindowConfig struct {
	// Shape is that of the window. Its buckets last at least four times Timeout, and whole microseconds.
	Shape     stat.Shape
	Threshold float64 // units in an interval, floored
	Value     bool    // it is that of a single value, see Config.ValueCalls
	cluster.Rule
}

// Window is a window that members share, as one of them sees it. What is said in [stat.Window]
// about limits and shapes holds for all members together, in the store's time. It is safe for
// concurrent use, and its methods never wait and never ask the store. Where they lack units they
// have the member ask for more in the background; a call that would wait for those uses
// [Member.Fetch].
//
// Four parts do the work: leases have the units that calls spend, demand says how much to ask for, round is the exchange
// with the store, and fallback decides while the store is unreachable. The window has them see each other's results. Its mutex
// guards all fields but rule, threshold, refused, and those that a part excepts.
type Window struct {
	leases   leases
	demand   demand
	round    round
	fallback fallback

	base
	rule      shared.Pointer[cluster.Rule]
	threshold shared.Uint64 // its bits
	value     bool
	task      task
	refused   shared.Int64 // calls, ever
	waited    int64        // likewise
}

// Window returns the window of a key. All that use the same key and shape have one; one of another shape begins
// with what the one before it has admitted here, if that is still in use. It needs no closing.
func (m *Member) Window(key string, cfg WindowConfig) (*Window, error) {
	if err := cfg.Shape.Validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := cfg.CheckWindow(cfg.Shape, cfg.Threshold); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if !validThreshold(cfg.Threshold) {
		return nil, errThreshold
	}
	shape := fmt.Sprintf("%d/%d/%t", cfg.Shape.Interval, cfg.Shape.Buckets, cfg.Shape.Strict)
	name := key
	key = m.Key("window", name, shape)
	shard := m.find(key)
	w, ok := limitOf(m, key, func() *Window {
		ring := store.Ring{Shape: cfg.Shape, Phase: time.Duration(phaseOf(key, int64(cfg.Shape.Width())))}
		w := &Window{
			leases: newLeases(cfg.Shape.Buckets), demand: newDemand(ring), round: newRound(ring),
			base: base{m: m, place: place{key: key}}, value: cfg.Value,
		}
		w.on.Store(shard)
		w.task.do = w.turn
		return w
	})
	if !ok {
		return nil, errOtherKind
	}
	w.configure(cfg.Threshold, cfg.Rule)
	if old := m.latest(name, w); old != nil {
		w.succeed(old)
	}
	return w, nil
}

var errThreshold = errors.New("cluster: a threshold is a number from 0 to 2^30")

func validThreshold(x float64) bool { return x >= 0 && x <= mostUnits } // NaN is neither

// configure gives the window another threshold and another rule; it keeps its shape. What was
// admitted still counts.
func (w *Window) configure(threshold float64, rule cluster.Rule) {
	rule = rule.Normalized()
	w.rule.Store(&rule)
	w.m.waitFor(rule.Timeout)
	switch before := math.Float64frombits(w.threshold.Swap(math.Float64bits(threshold))); {
	case before < threshold:
		w.demand.room.forget() // there may be room
	case before > threshold:
		now := w.m.clock.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.giveUpLocked(now) // it was granted within a larger limit
		w.scheduleLocked(now)
	}
}

// Timeout is the longest that a call waits for the store.
func (w *Window) Timeout() time.Duration { return w.rule.Load().Timeout }

// limit is what the window holds.
func (w *Window) limit() int64 {
	return int64(min(w.m.ofAll(math.Float64frombits(w.threshold.Load()), w.rule.Load().Scope), mostUnits))
}

// positionLocked is what the demand goes by.
func (w *Window) positionLocked() position {
	s := &w.leases
	return position{limit: w.limit(), left: s.lease.units(), few: s.lease.few(), next: s.next != 0, nextLeft: s.nextLeft, edge: w.round.edge}
}

// Ask says what TryAdd would do. It takes nothing; a call that is refused counts as such.
func (w *Window) Ask(now, n int64) (a Answer) {
	if w.leases.lease.has(now, n) {
		return Fits
	}
	if a = Refuses; !w.refuses(now, n) {
		w.mu.Lock()
		a = w.lookLocked(now, n)
		w.mu.Unlock()
	}
	if a == Refuses {
		w.refuse(n)
	}
	return a
}

// Look is Ask without a trace: it doesn't count a call that is refused either.
func (w *Window) Look(now, n int64) Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookLocked(now, n)
}

// refuses reports whether the store has said that there is no room, also with what the lease has,
// which would go back. While the lease lends only n beyond the limit is sure to be refused.
func (w *Window) refuses(now, n int64) bool {
	word := w.leases.lease.word.Load()
	return word&lends == 0 && w.demand.room.refuses(now, n, unitsOf(word)) || n > w.limit()
}

// lookLocked is Look.
func (w *Window) lookLocked(now, n int64) Answer {
	w.rollLocked(now)
	if !w.leases.lease.has(now, n) {
		w.leases.lease.collect()
	}
	switch {
	case w.leases.lease.has(now, n):
		return Fits
	case w.refuses(now, n):
		return Refuses
	case w.unreachableLocked():
		if _, fits, afterClosing := w.fallbackFitsLocked(now, n); fits || afterClosing {
			return Fits
		}
		return Refuses
	}
	return Lacks
}

// TryAdd takes n units at now if the member has them. The token is what [Window.Cancel] wants. If
// it has not, TryAdd returns false and has more fetched, unless there are none. The lane says
// nothing about the call but which processor it is on, roughly, see [stat.Window].
func (w *Window) TryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	number, ran, ok := w.leases.lease.take(lane, now, n)
	if !ok {
		return w.tryAdd(lane, now, n)
	}
	if ran {
		w.mu.Lock()
		post := w.runsLowLocked(now)
		w.mu.Unlock()
		w.send(post)
	}
	return lotToken(number), true
}

// tryAdd is TryAdd where that takes the mutex.
func (w *Window) tryAdd(lane uint32, now, n int64) (token int64, ok bool) {
	if w.refuses(now, n) {
		w.refuse(n)
		return 0, false
	}
	w.mu.Lock()
	w.rollLocked(now)
	number, ran, ok := w.leases.lease.draw(now, n)
	post, refused, missed := false, false, false
	switch {
	case ok:
		token = lotToken(number)
		if ran = w.leases.lease.lend(lane, now, n) || ran; ran {
			post = w.runsLowLocked(now)
		}
	case w.refuses(now, n):
		refused = true
	default:
		if missed = !w.unreachableLocked(); !missed {
			token, ok = w.takeFallbackLocked(now, n)
			refused = !ok
		}
		w.demand.short += n
		post = w.m.mayAsk(w.value, now) && w.postLocked(now, now)
	}
	w.mu.Unlock()
	switch {
	case refused:
		w.refuse(n)
	case missed: // the call may have it fetched
		w.miss(n)
	}
	if post || ran {
		w.send(post)
	}
	return token, ok
}

// refuse counts a call that is refused without asking the store.
func (w *Window) refuse(n int64) {
	w.miss(n)
	w.refused.Add(1)
}

// miss counts units that a call lacks.
func (w *Window) miss(n int64) { w.demand.missed.Add(n) }

// runsLowLocked has more fetched, as few are left, unless they will do, and reports whether a flush may send
// that.
func (w *Window) runsLowLocked(now int64) bool {
	w.demand.runsLow(w.positionLocked(), now)
	return w.postLocked(now, now)
}

// send has sent what may be sent. Either way it sees whether the machine was suspended.
func (w *Window) send(post bool) {
	if post {
		w.m.flush(false)
	} else {
		w.m.now()
	}
}

// RetryAfter is how long after now n units may fit, as far as the member knows; false if they never
// will, or if time alone doesn't tell.
func (w *Window) RetryAfter(now, n int64) (time.Duration, bool) {
	if n > w.limit() {
		return 0, false
	}
	if wait := w.demand.room.wait(now, n); wait > 0 {
		return wait, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.unreachableLocked() || w.leases.lease.units() >= n && now < w.leases.lease.end.Load() {
		return 0, true
	}
	return w.retryFallbackLocked(now, n)
}

// Figures are what a window, a throttle or a semaphore has done. The counters only grow.
type Figures struct {
	Leased   int64 // units that are ready to be spent
	Refused  int64 // calls, without asking the store
	Requests int64 // commands that were sent
	Waited   int64 // calls
	Away     bool  // the store doesn't answer
	Limit    int64 // of all members together
	// Why is the latest error of the store while it is unreachable, in its words; empty while it isn't.
	Why string
}

// Figures are what the window has done.
func (w *Window) Figures() Figures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Figures{
		Leased: w.leases.lease.units(), Refused: w.refused.Load(), Requests: w.round.requests, Waited: w.waited,
		Away: w.unreachableLocked(), Limit: w.limit(), Why: w.broken.why(w.shard()),
	}
}

// succeed has the window go on from what another one, whose place it takes, has admitted and still counts:
// the store is told at once. What either has leased goes back, for it was leased without a look at what the other
// has admitted, and so does what the store is about to grant.
func (w *Window) succeed(old *Window) {
	now := w.m.clock.Now()
	old.mu.Lock()
	old.rollLocked(now)
	old.giveUpLocked(now)
	entries := slices.Clone(old.round.account)
	old.round.account.passOn()
	old.mu.Unlock()

	w.mu.Lock()
	w.giveUpLocked(now)
	w.demand.room.forget() // there is room for what goes back
	for _, e := range entries {
		if n := e.units() - e.passedOn; n > 0 {
			to := w.round.account.of(w.round.ring.Bucket(old.round.ring.Begins(e.bucket+1) - 1))
			to.uncharged += n
			to.at = now
		}
	}
	w.round.account.passOn() // the other one knows of all this
	post := w.round.owes(now) && w.postLocked(now, now)
	w.mu.Unlock()
	if post {
		w.m.flush(false)
	}
}
