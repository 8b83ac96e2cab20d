package sharing

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/stat"
)

// WindowConfig configures a [Window].
type WindowConfig struct {
	// Shape is the window's shape. A bucket lasts at least four times Timeout, in whole
	// microseconds.
	Shape     stat.Shape
	Threshold float64 // units per interval, floored
	Value     bool    // the window is of a single value, see Config.ValueCalls
	cluster.Rule
}

// Window is one member's view of a window that members share. Limits and shapes are as in
// [stat.Window], for all members together and in the store's time. It is safe for concurrent use,
// and its methods never wait and never ask the store. If units are missing, the member asks for
// more in the background; a call that wants to wait for those uses [Member.Fetch].
//
// Four parts do the work: leases have the units that calls spend, demand says how much to ask for,
// round is the exchange with the store, and fallback decides while the store is unreachable. The
// window passes results between them. Its mutex guards all fields but rule, threshold, refused, and
// the exceptions that a part names.
type Window struct {
	leases   leases
	demand   demand
	round    round
	fallback fallback

	base
	rule      shared.Pointer[cluster.Rule]
	threshold shared.Uint64 // float64 bits
	value     bool
	name      string // the windows of a key in all shapes have one
	task      task
	refused   shared.Int64 // calls, in total
	waited    int64        // calls, in total
}

// Window returns the window of a key. Callers with the same key and shape share one. A window of
// another shape begins with the units that the previous one has admitted here, if that is still in
// use. It needs no closing.
func (m *Member) Window(key string, cfg WindowConfig) (*Window, error) {
	if err := cfg.Shape.Validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := cfg.CheckWindow(cfg.Shape, 0); err != nil {
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
			base: base{m: m, place: place{key: key}}, value: cfg.Value, name: name,
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

var errThreshold = errors.New("cluster: threshold is out of range: use 0 to 2^40")

func validThreshold(x float64) bool { return x >= 0 && x <= 1<<40 } // false for NaN

// mostLimit is the maximum limit of all members together: stores count to [store.MostNumber].
const mostLimit = 1 << 50

// configure changes the threshold and the rule; the shape stays. Admitted units still count.
func (w *Window) configure(threshold float64, rule cluster.Rule) {
	rule = rule.Normalized()
	w.rule.Store(&rule)
	w.m.waitFor(rule.Timeout)
	switch before := math.Float64frombits(w.threshold.Swap(math.Float64bits(threshold))); {
	case before < threshold:
		w.demand.room.forget() // the new limit may have room
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

// limit returns the units in a full window, of all members together.
func (w *Window) limit() int64 {
	return int64(min(w.m.ofAll(math.Float64frombits(w.threshold.Load()), w.rule.Load().Scope), mostLimit))
}

// positionLocked returns the input of the demand's decisions.
func (w *Window) positionLocked() position {
	s := &w.leases
	return position{
		limit: w.limit(), left: s.lease.units(), few: s.lease.few(), next: s.next != 0, nextLeft: s.nextLeft,
		edge: w.round.edge,
	}
}

// Stats are the counters of a window, a throttle or a semaphore. Refused, Requests and Waited only
// grow.
type Stats struct {
	Leased      int64 // units ready to be spent
	Refused     int64 // calls refused without asking the store
	Requests    int64 // commands sent
	Waited      int64 // calls that waited for the store
	Unreachable bool  // the store doesn't answer, or the key is unusable
	Limit       int64 // of all members together
	// Why is the store's latest error while it is unreachable; otherwise "".
	Why string
}

// Stats returns the window's counters.
func (w *Window) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		Leased: w.leases.lease.units(), Refused: w.refused.Load(), Requests: w.round.requests, Waited: w.waited,
		Unreachable: w.unreachableLocked(), Limit: w.limit(), Why: w.broken.why(w.shard()),
	}
}

// succeed takes over from the previous window of the key: units that it admitted and that still
// count are charged at once. The leases of both go back, as they were granted without regard to
// each other's admitted units, and so do grants in flight.
func (w *Window) succeed(old *Window) {
	now := w.m.clock.Now()
	old.mu.Lock()
	old.rollLocked(now)
	old.giveUpLocked(now)
	missing := old.round.account.passTo(w)
	old.mu.Unlock()

	w.mu.Lock()
	w.giveUpLocked(now)
	w.demand.restart()
	for _, e := range missing {
		e.at = now
		w.round.account.of(w.round.ring.Bucket(old.round.ring.Begins(e.bucket+1) - 1)).join(e)
	}
	w.round.account.passOn(old) // which has all of this
	post := w.round.owes(now) && w.postLocked(now, now)
	w.mu.Unlock()
	if post {
		w.m.flush(false)
	}
}
