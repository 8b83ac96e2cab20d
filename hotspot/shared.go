package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Shared reports whether a cluster shares the limits of the rule.
func (r Rule) Shared() bool { return r.Cluster.Shared() }

// leases reports whether calls take from leases.
func (r Rule) leases() bool { return r.Shared() && r.Mode != spec.Off }

// checkShared refuses fields that depend on the state of a single process.
func (r Rule) checkShared() error {
	local := ""
	switch {
	case !r.Shared():
	case r.Window != Strict:
		local = "strict: false: members share strict windows; remove it, or strict"
	case r.Per != spec.PerNone:
		local = "per: stores know intervals, but not the periods of a calendar; remove it, or replace per by interval"
	case r.Burst != 0 && r.Behavior != TokenBucket:
		local = "burst: members share windows and turns, which save up no units; remove it, or burst, or set behavior to tokenBucket"
	}
	if local != "" {
		return spec.BadField("cluster", "has no meaning for %s", local)
	}
	return r.Cluster.Check(r.ID)
}

// checkSharedLimit returns an error if members can't share a limit of the rule.
func (r Rule) checkSharedLimit(threshold float64) error {
	switch {
	case !r.Shared():
		return nil
	case r.Behavior == TokenBucket:
		return family.CheckSharedBucket(r.Cluster, threshold, r.Interval, r.Burst, r.Unit != "")
	case r.Unit != "" && (r.Metric == Concurrency || r.Behavior == Throttle):
		return family.CheckSharedUnits(threshold)
	case r.Metric == Concurrency:
		return r.Cluster.CheckThreshold(threshold)
	case r.Behavior == Throttle:
		return r.Cluster.CheckTurns(threshold, r.Interval)
	}
	if r.Cluster.CheckWindow(r.shape(), 1) != nil {
		least := 4 * r.Cluster.Normalized().Timeout
		return spec.BadField("interval", "is %v, but in a cluster must be at least %v, four times the timeout, and whole microseconds", r.Interval, least)
	}
	if r.Unit != "" {
		return family.CheckSharedUnits(threshold)
	}
	return r.Cluster.CheckThreshold(threshold)
}

// shape returns the shape of the windows that members share: as many buckets as the interval has
// room for, and at most ten.
func (r Rule) shape() stat.Shape {
	s := stat.Shape{Interval: r.Interval, Buckets: cluster.Buckets, Strict: true}
	for s.Buckets > 1 && (s.Validate() != nil || r.Cluster.CheckWindow(s, 1) != nil) {
		s.Buckets--
	}
	return s
}

// The state that members share for a value is in its cell, so at most MaxValues values have a shared
// limit of their own. Further values, on all members, share the limit of the rest. An evicted value
// loses nothing: its limit is in the store, and is found again by its key.

// SharedLimit returns the limit of the i-th value of the call. Rules with several values are always
// asked before they take.
func (c *controller) SharedLimit(inv *engine.Invocation, i int) (family.Shared, int64) {
	n, all := c.amount(inv), c.occurrences(inv)
	if n == 0 || i >= len(all) {
		return nil, 0
	}
	return c.leaseOf(inv.Now(), all[i].Value, i, c.planOf(inv)), c.unitsOf(all[i], n)
}

// leaseOf returns the lease for the i-th value of a call. Several values of a call may be in the
// rest of a shard: each has its own lease there, since the units that a call holds are identified by
// their lease.
func (c *controller) leaseOf(now int64, v argument.Value, i int, p *plan) *valueLease {
	q, hash := c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.obtainLocked(v, hash, now, q, c)
	x.used = now
	if !x.isRest() {
		i = 0
	}
	if c.moves {
		q = c.limitLocked(x, p, q, now)
	}
	if x.lease != nil && (x.lease.rule != c || x.lease.quota != q && !x.isRest()) {
		x.lease = nil // a new one for the key sets its threshold
	}
	at := &x.lease
	for *at != nil && ((*at).quota != q || (*at).number != i) {
		at = &(*at).next
	}
	if *at == nil {
		*at = c.newLeaseLocked(x, q, i)
	}
	return *at
}

// leaseLocked returns the lease of a cell under a quota, in the rest that of a number, or nil.
func (x *cell) leaseLocked(q *quota, number int) *valueLease {
	l := x.lease
	for l != nil && (l.quota != q || l.number != number) {
		l = l.next
	}
	return l
}

// newLeaseLocked creates the lease of a cell, in the rest that of a number.
func (c *controller) newLeaseLocked(x *cell, q *quota, number int) *valueLease {
	r, m := &c.rule, c.member
	key := family.SharedKey(m, core.KindHotspot, r.Info(), r.Unit, c.refusal.Resource, r.Mode.String())
	switch {
	case x.isRest() && q.stars != "":
		key = m.Key(key, "rest", q.stars)
	case x.isRest() && q.plan != nil:
		key = m.Key(key, "rest", "plan", q.plan.name.Key())
	case x.isRest():
		key = m.Key(key, "rest")
	default:
		key = m.ValueKey(key, x.value.Key())
	}
	says := c.refuseLocked(x, 1, q)
	l := &valueLease{cell: x, rule: c, quota: q, number: number}
	switch {
	case r.Metric == Concurrency:
		l.Shared = family.NewSharedSemaphore(m, key, r.Unit, sharing.SemaphoreConfig{Threshold: q.limit, Rule: r.Cluster, Value: true}, says)
	case r.Behavior == Throttle && !q.none:
		l.Shared = family.NewSharedThrottle(m, key, r.Unit, sharing.ThrottleConfig{Interval: r.Interval, Threshold: q.limit, Rule: r.Cluster, Value: true}, r.MaxWait, says)
	case r.Behavior == TokenBucket && !q.none:
		l.Shared = family.NewSharedBucket(m, key, r.Unit, sharing.BucketConfig{Interval: r.Interval, Threshold: q.limit, Burst: int64(r.Burst), Rule: r.Cluster, Value: true}, says)
	default:
		l.Shared = family.NewSharedWindow(m, key, r.Unit, sharing.WindowConfig{Shape: r.shape(), Threshold: q.limit, Rule: r.Cluster, Value: true}, false, number, says)
	}
	return l
}

// valueLease is the lease for the value of a cell. It records the outcome of calls.
type valueLease struct {
	family.Shared
	cell   *cell
	rule   *controller
	quota  *quota
	number int         // in the rest: of the value among those of a call
	next   *valueLease // of the same cell
}

// Ask records a refusal.
func (l *valueLease) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	v := l.Shared.Ask(inv, n)
	if v.Block != nil && !v.NeedsMore() {
		l.note(inv.Now(), n, false)
	}
	return v
}

// Take records whether the call passed.
func (l *valueLease) Take(inv *engine.Invocation, n int64) engine.Verdict {
	v := l.Shared.Take(inv, n)
	l.note(inv.Now(), n, v.Block == nil)
	return v
}

func (l *valueLease) note(now, n int64, passed bool) {
	s := l.cell.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(l.cell)
	l.cell.heat.add(now, min(n, maxHeat))
	if passed {
		l.cell.passed++
	} else {
		l.cell.refused++
	}
}

// keepsLocked reports whether the cell must be kept: a call has used it lately, or units of it are
// in flight.
func (l *valueLease) keepsLocked(now int64) bool {
	return now-l.cell.used < int64(max(l.rule.rule.Interval, l.rule.rule.MaxWait, time.Second)) || !l.Idle(now) ||
		l.next != nil && l.next.keepsLocked(now)
}

// explainShared is like explain, but for a value whose limit a cluster shares.
func (c *controller) explainShared(inv *engine.Invocation, v argument.Value, n int64, j *core.Judgement) core.Measure {
	hash := v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	q := c.quotaOf(v, c.planOf(inv))
	if x == nil && !q.named && len(s.ring) >= s.room {
		x = &s.rest
	}
	if x != nil {
		q = c.answeredLocked(x, q)
		if l := x.leaseLocked(q, 0); l != nil {
			m := l.Explain(inv, n, j)
			j.Why = also(j.Why, c.originLocked(x, q, inv.Now()))
			return m
		}
	}
	if q.none {
		j.Outcome, j.Why = core.Refused, "the threshold is below one unit, so every call is refused"
	} else {
		j.Why = family.WouldAskStore
	}
	return core.Measure{Of: "units, on a lease", Limit: q.limit, AtHand: true}
}

// retrySharedLocked returns the time until one more unit of a cell's value may fit.
func (c *controller) retrySharedLocked(x *cell, now int64, q *quota) (wait time.Duration, known bool) {
	if x != nil {
		if l := x.leaseLocked(q, 0); l != nil {
			return l.RetryAfter(now, 1)
		}
	}
	return 0, c.rule.Metric == QPS
}
