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
// concurrent use, and its methods never wait and never ask the store. Where units are missing they
// have the member ask for more in the background; a call that would wait for those uses
// [Member.Fetch].
//
// Four parts do the work: leases have the units that calls spend, demand says how much to ask for, round is
// the exchange with the store, and fallback decides while the store is unreachable. The window has them see
// each other's results. Its mutex guards all fields but rule, threshold, refused, and those that a part
// excepts.
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

// Window returns the window of a key. All that use the same key and shape have one; one of another shape
// begins with what the one before it has admitted here, if that is still in use. It needs no closing.
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

// limit returns the units that a window holds, of all members together.
func (w *Window) limit() int64 {
	return int64(min(w.m.ofAll(math.Float64frombits(w.threshold.Load()), w.rule.Load().Scope), mostUnits))
}

// positionLocked returns the state that the demand decides by.
func (w *Window) positionLocked() position {
	s := &w.leases
	return position{
		limit: w.limit(), left: s.lease.units(), few: s.lease.few(), next: s.next != 0, nextLeft: s.nextLeft,
		edge: w.round.edge,
	}
}

// Stats are what a window, a throttle or a semaphore has done. The counters only grow.
type Stats struct {
	Leased   int64 // units that are ready to be spent
	Refused  int64 // calls, without asking the store
	Requests int64 // commands that were sent
	Waited   int64 // calls
	Away     bool  // the store doesn't answer
	Limit    int64 // of all members together
	// Why is the latest error of the store while it is unreachable, in its words; empty while it isn't.
	Why string
}

// Stats are what the window has done.
func (w *Window) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		Leased: w.leases.lease.units(), Refused: w.refused.Load(), Requests: w.round.requests, Waited: w.waited,
		Away: w.unreachableLocked(), Limit: w.limit(), Why: w.broken.why(w.shard()),
	}
}

// succeed has the window go on from what another one, whose place it takes, has admitted and still counts:
// the store is charged at once. What either has leased goes back, for it was leased without a look at what
// the other has admitted, and so does what the store is about to grant.
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
