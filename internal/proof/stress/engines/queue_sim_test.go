//go:build sim

package engines

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/schedules"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/node"
)

const turn = 10 * time.Millisecond

// client is a context that ends when the client disconnects.
type client struct {
	quitter
	over  bool          // its call has returned
	never chan struct{} // makes it a context that may end
}

func newClient() *client {
	return &client{quitter: quitter{Context: context.Background()}, never: make(chan struct{})}
}

func (c *client) Done() <-chan struct{} { return c.never }

// run records a call that has run.
type run struct {
	user     int
	at, cost int64
}

// queued records the outcomes of calls in queues.
type queued struct {
	s       *schedules.Schedule
	e       *engine.Engine
	maxWait time.Duration
	runs    []run
	gap     int64 // latest time at which a client left
	exact   bool  // one queue, which nobody changes
}

// comes adds a call that arrives after a while, and whose client may disconnect.
func (q *queued) comes(user int) {
	s, clock := q.s, q.s.Clock()
	units := 1 + s.Rand.IntN(2)
	after := []time.Duration{0, 0, 0, turn / 2, turn, 3 * turn}[s.Rand.IntN(6)]
	ctx, c := context.Background(), newClient()
	if s.Rand.IntN(3) > 0 {
		ctx = c
		leaves := time.Duration(s.Rand.Int64N(10)) * turn / 2
		if s.Rand.IntN(3) > 0 {
			s.Named("client", func() {
				if leaves > 0 {
					_ = clock.Sleep(context.Background(), leaves)
				}
				if now := clock.Now(); !c.over {
					c.ended, q.gap = true, now
				}
			})
		}
	}
	s.Go(func() {
		if after > 0 {
			_ = clock.Sleep(context.Background(), after)
		}
		came := clock.Now()
		entry, err := q.e.Enter(ctx, "a", []engine.Option{engine.Units(units), engine.Param("user", user)})
		c.over = true
		now := clock.Now()
		switch waited := time.Duration(now - came); {
		case waited > q.maxWait:
			s.Failf("a call waited for %v", waited)
		case err == nil:
			q.ran(run{user, now, int64(units) * int64(turn)}, came)
		case waited > 0 && !errors.Is(err, context.Canceled) && core.KindOf(err) != core.KindIsolation:
			s.Failf("a call waited for %v and was then refused: %v", waited, err)
		}
		if err == nil {
			entry.Exit()
		}
	})
}

func (q *queued) ran(r run, came int64) {
	due := max(came, q.gap)
	if n := len(q.runs); n > 0 {
		due = max(due, q.runs[n-1].at+r.cost)
	}
	if q.exact && r.at > due {
		q.s.Failf("a call runs at %v, and could have run at %v", time.Duration(r.at-start), time.Duration(due-start))
	}
	q.runs = append(q.runs, r)
}

// spaced checks the distances of the calls of each user.
func (q *queued) spaced(same func(a, b run) bool) {
	for i, r := range q.runs {
		for _, before := range slices.Backward(q.runs[:i]) {
			if same(before, r) {
				if gap := r.at - before.at; gap < r.cost {
					q.s.Failf("two calls of user %d run %v apart, but the later one costs %v", r.user, time.Duration(gap), time.Duration(r.cost))
				}
				break
			}
		}
	}
}

// ends checks the end of a schedule: no call waits, and when the queues are idle a new call runs at
// once.
func (q *queued) ends() {
	if n := q.e.Waiting(); n != 0 {
		q.s.Failf("%d calls still wait at the end", n)
	}
	q.s.Clock().Set(q.s.Clock().Now() + int64(10*time.Second))
	if _, fits := enterNow(q.e); !fits {
		q.s.Failf("the last call finds another one queued")
	}
}

// enterNow makes a call that can't wait.
func enterNow(e *engine.Engine) (engine.Entry, bool) {
	c := newClient()
	c.ended = true
	entry, err := e.Enter(c, "a", []engine.Option{engine.Param("user", 0)})
	if err == nil {
		entry.Exit()
	}
	return entry, err == nil
}

// known bug 16, 49, 128: calls of one and two units join the queue of a rule or of a value, at one
// instant or one after the other, and clients disconnect at any moment. Two running calls are never
// closer than the later one's cost. No call waits for an abandoned turn: each runs once the cost
// after the previous call allows, on arrival, or when another client disconnects.
func TestSimQueue(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		q := &queued{s: s, e: e, maxWait: time.Duration(1+s.Rand.IntN(8)) * turn, gap: math.MinInt64, exact: true}
		if s.Rand.IntN(2) == 0 {
			load(s, e, flow.Rule{Resource: "a", Threshold: 100, Behavior: flow.Throttle, MaxWait: q.maxWait})
		} else {
			loadValues(s, e, hotspot.Rule{Resource: "a", Param: "user", Threshold: 100, Behavior: hotspot.Throttle, MaxWait: q.maxWait})
		}
		for range 3 + s.Rand.IntN(3) {
			q.comes(0)
		}
		s.Check(func() {
			q.spaced(func(run, run) bool { return true })
			q.ends()
		})
	})
}

func loadValues(s *schedules.Schedule, e *engine.Engine, rules ...hotspot.Rule) {
	if err := e.Update(func(b *engine.SnapshotBuilder) error { return hotspot.Compile(b, rules) }); err != nil {
		s.Failf("loading rules: %v", err)
	}
}

// known bug 16, 87, 128: the same with several values and a rule that can track only one. Two
// running calls of a value are never closer than the later one's cost.
func TestSimQueuesOfValues(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		q := &queued{s: s, e: e, maxWait: time.Duration(1+s.Rand.IntN(8)) * turn}
		loadValues(s, e, hotspot.Rule{Resource: "a", Param: "user", Threshold: 100, Behavior: hotspot.Throttle, MaxWait: q.maxWait, MaxValues: 1})
		for range 4 + s.Rand.IntN(3) {
			q.comes(s.Rand.IntN(3))
		}
		s.Check(func() {
			q.spaced(func(a, b run) bool { return a.user == b.user })
			q.ends()
		})
	})
}

// known bug 72, 128: calls wait in several queues at once, of enforced and shadow rules, and
// perhaps for a permit as well or at a breaker, while rules are added and removed, and change their
// rate, mode or behavior. No call waits longer than the longest wait, and at the end nothing is
// held and the queues are empty for a new call.
func TestSimQueuesAsRulesChange(t *testing.T) {
	schedules.Sample(t, func(s *schedules.Schedule) {
		e := newEngine(s, trial.Chain(), node.Caps{})
		q := &queued{s: s, e: e, maxWait: time.Hour}
		loads := make([]func(*engine.SnapshotBuilder) error, 1+s.Rand.IntN(3))
		for i := range loads {
			loads[i] = manyQueues(s, 8*turn)
		}
		update := func(compile func(*engine.SnapshotBuilder) error) {
			if err := e.Update(compile); err != nil {
				s.Failf("loading rules: %v", err)
			}
		}
		update(loads[0])
		if len(loads) == 1 {
			q.maxWait = 10 * turn // at throttles, and then for a permit
		}
		for i := range 3 + s.Rand.IntN(2) {
			q.comes(i % 2)
		}
		s.Named("rules", func() {
			for _, next := range loads[1:] {
				_ = s.Clock().Sleep(context.Background(), time.Duration(1+s.Rand.IntN(30))*turn/10)
				update(next)
			}
		})
		s.Check(q.ends)
	})
}

// manyQueues draws rules that make calls wait.
func manyQueues(s *schedules.Schedule, maxWait time.Duration) func(*engine.SnapshotBuilder) error {
	mode := func() spec.Mode {
		return []spec.Mode{spec.Enforce, spec.Enforce, spec.Shadow, spec.Off}[s.Rand.IntN(4)]
	}
	rate := func() float64 { return []float64{50, 100, 200}[s.Rand.IntN(3)] }
	var flows []flow.Rule
	for _, id := range []string{"one", "two"} {
		r := flow.Rule{ID: id, Resource: "a", Threshold: rate(), Behavior: flow.Throttle, MaxWait: maxWait, Mode: mode()}
		if s.Rand.IntN(4) == 0 {
			r.Behavior, r.MaxWait, r.Threshold = flow.Reject, 0, 1000
		}
		if s.Rand.IntN(5) > 0 {
			flows = append(flows, r)
		}
	}
	values := []hotspot.Rule{{ID: "values", Resource: "a", Param: "user", Threshold: rate(), Behavior: hotspot.Throttle, MaxWait: maxWait, Mode: mode()}}
	var lines []isolation.Rule
	if s.Rand.IntN(3) == 0 {
		lines = []isolation.Rule{{ID: "line", Resource: "a", Threshold: 2, MaxQueue: 1, MaxWait: 2 * turn}}
	}
	var breakers []breaker.Rule
	if s.Rand.IntN(3) == 0 {
		breakers = []breaker.Rule{{ID: "breaker", Resource: "a", Strategy: breaker.ErrorCount, Threshold: 1000}}
	}
	return func(b *engine.SnapshotBuilder) error {
		return errors.Join(flow.Compile(b, flows), hotspot.Compile(b, values), isolation.Compile(b, lines), breaker.Compile(b, breakers))
	}
}
