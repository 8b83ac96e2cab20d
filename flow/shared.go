package flow

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/node"
)

// Shared reports whether a cluster shares the limit of the rule.
func (r Rule) Shared() bool { return r.Cluster.Shared() }

// leases reports whether calls take from a lease: a rule that refuses every call needs none.
func (r Rule) leases() bool { return r.Shared() && r.Threshold > 0 && r.Mode != spec.Off }

// checkShared refuses fields that depend on what only the process itself can know.
func (r Rule) checkShared() error {
	local := ""
	switch {
	case !r.Shared():
	case r.Relation != Direct:
		local = fmt.Sprintf("relation %s: what another resource or a single context has counted, each process knows for itself; remove it, or set relation to direct", r.Relation)
	case r.Behavior.warmsUp():
		local = fmt.Sprintf("behavior %s: how warm a resource is, each process knows for itself; remove it, or set behavior to reject or throttle", r.Behavior)
	case r.Behavior == TokenBucket:
		local = "behavior tokenBucket: members share windows, turns and permits, and each process has its tokens for itself; remove it, or set behavior to reject or throttle"
	case r.MemoryThreshold != 0:
		local = "memoryThreshold: how much memory is in use, each process knows for itself; remove it, or memoryThreshold"
	}
	if local != "" {
		return spec.BadField("cluster", "has no meaning for %s", local)
	}
	return r.Cluster.Check(r.ID)
}

// checkSharedNumbers returns why members can't share the limit.
func (r Rule) checkSharedNumbers() error {
	switch {
	case !r.Shared():
		return nil
	case r.Metric == Concurrency:
		return r.Cluster.CheckThreshold(r.Threshold)
	case r.Behavior == Throttle:
		return r.Cluster.CheckTurns(r.Threshold, r.Interval)
	}
	return r.Cluster.CheckWindow(r.shape(), r.Threshold)
}

// lease is a controller's part of a limit that a cluster shares.
type lease struct {
	all family.Shared // nil for a rule that holds for each caller by itself

	member *sharing.Member
	mu     sync.Mutex
	of     map[*node.OriginNode]family.Shared // of single callers
}

// maxLeased is how many callers are remembered: the limit of any other is found again by its key.
const maxLeased = 4096

func newLease(c *controller, m *sharing.Member) *lease {
	l := &lease{member: m}
	if c.rule.Origin != OriginOther {
		l.all = c.sharedLimit(m, c.rule.Origin)
	}
	return l
}

// sharedLimit is the limit that the rule shares for a caller. No other rule has it: a rule in
// shadow mode doesn't share with an enforced one.
func (c *controller) sharedLimit(m *sharing.Member, origin string) family.Shared {
	r := &c.rule
	key := m.Key("flow", r.ID, c.resource.Name(), origin, r.Mode.String())
	switch {
	case r.Metric == Concurrency:
		return family.NewSharedSemaphore(m, key, sharing.SemaphoreConfig{Threshold: r.Threshold, Rule: r.Cluster}, c.refusal)
	case r.Behavior == Throttle:
		return family.NewSharedThrottle(m, key, sharing.ThrottleConfig{Interval: r.Interval, Threshold: r.Threshold, Rule: r.Cluster}, r.MaxWait, c.refusal)
	}
	return family.NewSharedWindow(m, key, sharing.WindowConfig{Shape: r.shape(), Threshold: r.Threshold, Rule: r.Cluster}, true, c.refusal)
}

// retryAfter is when one more unit may fit, which is not known for single callers.
func (l *lease) retryAfter(now int64) (time.Duration, bool) {
	if l.all == nil {
		return 0, false
	}
	return l.all.RetryAfter(now)
}

// leased is the limit that the call counts in, nil if the rule, one of rs, is not about it.
func (c *controller) leased(inv *engine.Invocation, rs *checker) family.Shared {
	switch {
	case c.counts(inv, rs) == nil:
		return nil
	case c.lease.all != nil:
		return c.lease.all
	}
	return c.leasedFor(inv.OriginNode())
}

// leasedFor is leased for a caller by itself.
func (c *controller) leasedFor(n *node.OriginNode) family.Shared {
	l := c.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of[n]
	if w == nil {
		if l.of == nil || len(l.of) == maxLeased {
			l.of = make(map[*node.OriginNode]family.Shared)
		}
		w = c.sharedLimit(l.member, n.Name())
		l.of[n] = w
	}
	return w
}

// limits are those that calls have asked for.
func (l *lease) limits() []family.Shared {
	if l.all != nil {
		return []family.Shared{l.all}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.of))
}

// Shares are the rules whose limits a cluster shares, nil if there are none.
func (rs *checker) Shares() engine.Sharer { return rs.shared.Sharer() }

// sharer is a rule in force whose limit a cluster shares, one of rs.
type sharer struct {
	*controller
	rs *checker
}

// SharedLimit is the limit that the call counts in.
func (s *sharer) SharedLimit(inv *engine.Invocation, i int) (family.Shared, int64) {
	if i > 0 {
		return nil, 0
	}
	return s.leased(inv, s.rs), inv.Units()
}

// Direct reports whether no call waits for its turn.
func (s *sharer) Direct() bool { return s.rule.Behavior != Throttle }
