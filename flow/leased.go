package flow

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/node"
)

// leased enforces a limit that a cluster shares. The checker asks enforced rules through their
// sharer, after all others, because a call may have to wait for the store; so ask is never called,
// and take only in shadow mode. The mutex guards the limits of single callers.
type leased struct {
	*controller
	before enforcer      // enforcer of the same rule while it was local; it keeps the history
	all    family.Shared // nil for a rule that limits each caller separately

	member *sharing.Member
	mu     sync.Mutex
	of     map[*node.OriginNode]family.Shared // by caller
}

// maxLeased bounds the remembered callers; the limit of any other caller is looked up by its key.
const maxLeased = 4096

// newLeased returns the enforcer of a rule that continues old unless that is nil.
func newLeased(c *controller, before enforcer, m *sharing.Member, old *controller) *leased {
	e := &leased{controller: c, before: before, member: m}
	if c.rule.Origin != OriginOther {
		e.all = e.share(c.rule.Origin)
	} else if old != nil {
		e.continueCallers(old)
	}
	return e
}

// continueCallers makes the windows of the callers of old if their shape changes. A window charges
// the units of the previous one when it is made: until then, other members take their room.
func (e *leased) continueCallers(old *controller) {
	was, ok := old.enforcer.(*leased)
	if !ok || !e.rule.windowed() || was.rule.shape() == e.rule.shape() {
		return
	}
	was.mu.Lock()
	defer was.mu.Unlock()
	e.of = make(map[*node.OriginNode]family.Shared, len(was.of))
	for n := range was.of {
		e.of[n] = e.share(n.Name())
	}
}

// share returns the rule's shared limit for a caller. No other rule uses it: a rule in shadow mode
// doesn't share with an enforced one.
func (e *leased) share(origin string) family.Shared {
	r, m := &e.rule, e.member
	key := family.SharedKey(m, core.KindFlow, r.Info(), r.Unit, e.resource.Name(), origin, r.Mode.String())
	switch {
	case r.Metric == Concurrency:
		return family.NewSharedSemaphore(m, key, r.Unit, sharing.SemaphoreConfig{Threshold: r.Threshold, Rule: r.Cluster}, e.refusal)
	case r.Behavior == Throttle:
		return family.NewSharedThrottle(m, key, r.Unit, sharing.ThrottleConfig{Interval: r.Interval, Threshold: r.Threshold, Rule: r.Cluster}, r.MaxWait, e.refusal)
	case r.Behavior == TokenBucket:
		return family.NewSharedBucket(m, key, r.Unit, sharing.BucketConfig{Interval: r.Interval, Threshold: r.Threshold, Burst: int64(r.Burst), Rule: r.Cluster}, e.refusal)
	}
	return family.NewSharedWindow(m, key, r.Unit, sharing.WindowConfig{Shape: r.shape(), Threshold: r.Threshold, Rule: r.Cluster}, true, 0, e.refusal)
}

// limitFor returns the limit that applies to a call, which the rule must apply to.
func (e *leased) limitFor(inv *engine.Invocation) family.Shared {
	if e.all != nil {
		return e.all
	}
	n := inv.OriginNode()
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.of[n]
	if w == nil {
		if e.of == nil || len(e.of) == maxLeased {
			e.of = make(map[*node.OriginNode]family.Shared)
		}
		w = e.share(n.Name())
		e.of[n] = w
	}
	return w
}

// limits returns the limits that calls have used so far.
func (e *leased) limits() []family.Shared {
	if e.all != nil {
		return []family.Shared{e.all}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.of))
}

func (e *leased) ask(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	return e.limitFor(inv).Ask(inv, e.rule.amount(inv))
}

// take rehearses the call; Rehearse counts the refusal, so take returns none.
func (e *leased) take(inv *engine.Invocation, _ *node.StatisticNode) engine.Verdict {
	family.Rehearse(inv, e.record, e.rule.Unit, e.limitAmong)
	return engine.Verdict{}
}

// retryAfter is unknown for rules that limit each caller separately.
func (e *leased) retryAfter(now, n int64) (wait time.Duration, known bool) {
	if e.all == nil {
		return 0, false
	}
	return e.all.RetryAfter(now, n)
}

func (e *leased) explain(inv *engine.Invocation, _ *node.StatisticNode, j *core.Judgement) {
	j.Measures = []core.Measure{e.limitFor(inv).Explain(inv, e.rule.amount(inv), j)}
}

func (e *leased) idle(now int64) bool { return e.before.idle(now) }

// limitAmong returns the i-th limit that the rule sets for a call; there is only one.
func (e *leased) limitAmong(inv *engine.Invocation, i int) (family.Shared, int64) {
	if i > 0 {
		return nil, 0
	}
	return e.limitFor(inv), e.rule.amount(inv)
}

// Shares returns the rules whose limits a cluster shares, or nil if there are none.
func (rs *checker) Shares() engine.Sharer { return rs.shared.Sharer() }

// sharer is an enforced rule of rs whose limit a cluster shares.
type sharer struct {
	*leased
	rs *checker
}

// SharedLimit returns the limit that applies to the call.
func (s *sharer) SharedLimit(inv *engine.Invocation, i int) (family.Shared, int64) {
	if s.counts(inv, s.rs) == nil {
		return nil, 0
	}
	return s.limitAmong(inv, i)
}

// Direct reports whether calls never wait for a turn.
func (s *sharer) Direct() bool { return s.rule.Behavior != Throttle }
