package flow

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/family"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
)

// Shared reports whether a cluster shares the limit of the rule.
func (r Rule) Shared() bool { return r.Cluster.Shared() }

// leases reports whether calls take of a lease: a rule that refuses every call needs none.
func (r Rule) leases() bool { return r.Shared() && r.Threshold > 0 && r.Mode != spec.Off }

// checkShared refuses what each process can only know for itself.
func (r Rule) checkShared() error {
	local := ""
	switch {
	case !r.Shared():
	case r.Relation != Direct:
		local = fmt.Sprintf("relation %s: what another resource or a single context has counted, each process knows for itself; remove it, or set relation to direct", r.Relation)
	case r.Behavior.warmsUp():
		local = fmt.Sprintf("behavior %s: how warm a resource is, each process knows for itself; remove it, or set behavior to reject", r.Behavior)
	case r.Metric == Concurrency:
		local = "metric concurrency: a cluster shares limits on what passes per interval; remove it, or set metric to qps"
	case r.Behavior != Reject:
		local = fmt.Sprintf("behavior %s: a cluster shares what is rejected beyond a limit; remove it, or set behavior to reject", r.Behavior)
	case r.MemoryThreshold != 0:
		local = "memoryThreshold: how much memory is in use, each process knows for itself; remove it, or memoryThreshold"
	}
	if local != "" {
		return spec.BadField("cluster", "has no meaning for %s", local)
	}
	return r.Cluster.Check(r.ID)
}

// lease is what a controller has of a limit that a cluster shares.
type lease struct {
	all *family.SharedWindow // nil for a rule that holds for each caller by itself

	member *cluster.Member
	mu     sync.Mutex
	of     map[*node.OriginNode]*family.SharedWindow // of single callers
}

// maxLeased is how many callers are remembered: what is not is found again by its key.
const maxLeased = 4096

func newLease(c *controller, m *cluster.Member) *lease {
	l := &lease{member: m}
	if c.rule.Origin != OriginOther {
		l.all = c.sharedWindow(m, c.rule.Origin)
	}
	return l
}

// sharedWindow is the window that the rule shares for a caller. Nobody else has it: a rule in shadow
// mode shares with none that is in force.
func (c *controller) sharedWindow(m *cluster.Member, origin string) *family.SharedWindow {
	key := m.Key("flow", c.rule.ID, c.resource.Name(), origin, c.rule.Mode.String())
	return family.NewSharedWindow(m, key, cluster.WindowConfig{Shape: c.rule.shape(), Threshold: c.rule.Threshold, Rule: c.rule.Cluster}, c.refusal)
}

// retryAfter is when one more unit may fit, which is not known of callers.
func (l *lease) retryAfter(now int64) (time.Duration, bool) {
	if l.all == nil {
		return 0, false
	}
	return l.all.RetryAfter(now)
}

// leased is the window that the call counts in, nil if the rule, one of rs, is not about it.
func (c *controller) leased(inv *core.Invocation, rs *Rules) *family.SharedWindow {
	switch {
	case c.counts(inv, rs) == nil:
		return nil
	case c.lease.all != nil:
		return c.lease.all
	}
	return c.leasedFor(inv.OriginNode())
}

// leasedFor is leased for a caller by itself.
func (c *controller) leasedFor(n *node.OriginNode) *family.SharedWindow {
	l := c.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of[n]
	if w == nil {
		if l.of == nil || len(l.of) == maxLeased {
			l.of = make(map[*node.OriginNode]*family.SharedWindow)
		}
		w = c.sharedWindow(l.member, n.Name())
		l.of[n] = w
	}
	return w
}

// windows are those that calls have come for.
func (l *lease) windows() []*family.SharedWindow {
	if l.all != nil {
		return []*family.SharedWindow{l.all}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.of))
}

// shares are the rules in force whose limits a cluster shares.
type shares struct{ *Rules }

// Shares are the rules whose limits a cluster shares, nil if there are none.
func (rs *Rules) Shares() core.Sharer {
	if len(rs.shared) == 0 {
		return nil
	}
	return shares{rs}
}

// Direct reports whether there is one such rule: nobody else needs to be asked before it takes.
func (s shares) Direct() bool { return len(s.shared) == 1 }

// Ask returns the first refusal, or else that the call lacks something, or its longest wait.
func (s shares) Ask(inv *core.Invocation) core.Verdict {
	var all family.Answers
	patience := family.Patience(inv)
	for _, c := range s.shared {
		if w := c.leased(inv, s.Rules); w != nil && all.Add(w.Ask(inv, inv.Units(), patience)) {
			break
		}
	}
	return all.Verdict
}

// Take lets every rule take. It returns the first refusal, or else the longest wait.
func (s shares) Take(inv *core.Invocation) core.Verdict {
	var all family.Answers
	patience := family.Patience(inv)
	for _, c := range s.shared {
		if w := c.leased(inv, s.Rules); w != nil && all.Add(w.Take(inv, inv.Units(), patience)) {
			break
		}
	}
	return all.Verdict
}

// Wants has the call want what it doesn't hold.
func (s shares) Wants(inv *core.Invocation) {
	patience := family.Patience(inv)
	for _, c := range s.shared {
		if w := c.leased(inv, s.Rules); w != nil {
			w.Want(inv, inv.Units(), patience)
		}
	}
}
