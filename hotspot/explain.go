package hotspot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// Explain returns the judgement of each rule on the values of the call.
func (rs *checker) Explain(inv *engine.Invocation) (all []core.Judgement) {
	for _, c := range slices.Concat(rs.Holding, rs.sharing, rs.Shadows) {
		j := core.Judgement{Rule: c.rule.ID, Outcome: core.NotJudged, Why: "the call has no " + c.missingPart(inv)}
		n := c.amount(inv)
		if n == 0 {
			j.Why = "applies only to calls with a cost in " + c.rule.Unit
			if c.home != nil {
				j.Why = cmp.Or(family.NotAtHome(inv, c.home, c.rule.Match), j.Why)
			}
			all = append(all, j)
			continue
		}
		for i, o := range c.occurrences(inv) {
			var one core.Judgement
			m := c.explain(inv, o.Value, c.unitsOf(o, n), &one)
			m.For = o.Value.String()
			one.Rule, one.Measures = j.Rule, append(j.Measures, m)
			if i > 0 {
				one = worse(j, one)
			}
			j = one
		}
		all = append(all, j)
	}
	return all
}

// missingPart describes, in words, the argument that the values come from or, of several, the first
// that the call doesn't have.
func (c *controller) missingPart(inv *engine.Invocation) string {
	parts := c.rule.parts()
	if c.key == nil {
		return describe(parts[0])
	}
	return describe(parts[max(0, inv.MissingPart(c.key))])
}

// worse combines the judgements of two values of one call.
func worse(a, b core.Judgement) core.Judgement {
	a.Measures = b.Measures
	switch {
	case b.Outcome != core.Refused && a.Outcome == core.Refused,
		b.Outcome == core.Passes && a.Outcome == core.Waits,
		b.Outcome == core.Waits && a.Outcome == core.Waits && !b.Runs.After(a.Runs),
		b.Outcome == a.Outcome && a.Outcome == core.Passes:
		return a
	case b.Outcome == core.Refused && a.Outcome == core.Refused && (a.Next.IsZero() || !b.Next.IsZero() && a.Next.After(b.Next)):
		return a
	}
	return b
}

// explain returns the judgement on n units of a value, without side effects: a value that the rule
// doesn't know stays unknown.
func (c *controller) explain(inv *engine.Invocation, v argument.Value, n int64, j *core.Judgement) core.Measure {
	if c.member != nil {
		return c.explainShared(inv, v, n, j)
	}
	now, q, hash := inv.Now(), c.quotaOf(v, c.planOf(inv)), v.Hash()
	s := c.values.shard(hash)
	s.lock()
	defer s.mu.Unlock()
	if x := s.cells.find(&v, hash); x != nil {
		q = c.answeredLocked(x, q)
		m := c.explainCellLocked(inv, x, n, q, j)
		j.Why = also(j.Why, c.originLocked(x, q, now))
		return m
	}
	fresh := s.made(v, hash, now, q)
	leaves, ok := s.findsRoomLocked(now, c)
	if q.named || ok {
		if leaves != nil && !q.named && c.rule.Behavior == Throttle {
			fresh.queueLocked(q).NotBefore(leaves.last()) // as the floor will require
		}
		m := c.explainCellLocked(inv, &fresh, n, q, j)
		j.Why = also(j.Why, c.originLocked(&fresh, q, now))
		// By then the value may get the cell of another.
		j.About = j.About || leaves != nil && !j.Next.IsZero()
		return m
	}
	var asked core.Judgement
	c.explainCellLocked(inv, &fresh, n, q, &asked)
	m := c.explainRestLocked(inv, s, n, q, j)
	if asked.Outcome == core.Refused && j.Outcome != core.Refused {
		*j = asked
	}
	j.Why = "the rule's table of values (maxValues) is full: this value shares a limit with others"
	j.About = !j.Next.IsZero()
	return m
}

// also returns a reason with another. Both may be empty.
func also(why, more string) string {
	if why == "" || more == "" {
		return why + more
	}
	return why + "; " + more
}

// findsRoomLocked reports whether a value that the rule doesn't name would get a cell, and which
// cell it would replace if another value must be evicted; see obtainLocked.
func (s *shard) findsRoomLocked(now int64, rule *controller) (leaves *cell, ok bool) {
	if len(s.ring) < s.room {
		return nil, true
	}
	// If the ring is over its room, one eviction is not enough.
	for i := 1; i <= min(maxLook, len(s.ring)) && len(s.ring) == s.room; i++ {
		if x := s.ring[(s.hand+i)%len(s.ring)]; rule.forgettableLocked(x, now) {
			return x, true
		}
	}
	return nil, false
}

// explainCellLocked is like fitsLocked, but reports the numbers behind the decision.
func (c *controller) explainCellLocked(inv *engine.Invocation, x *cell, n int64, q *quota, j *core.Judgement) core.Measure {
	now, first := inv.Now(), inv.Prioritized()
	left, locked := c.lockedOutLocked(x, now)
	switch {
	case locked && !q.none:
		most := n
		if c.rule.Behavior != Throttle {
			most = min(n, q.size)
		}
		wait, known := c.retryLocked(x, now, most, q)
		inv.JudgeRefused(j, max(wait, left), known && n == most)
		j.Why = fmt.Sprintf("locked out for another %s: refused in %d intervals in a row", shown.Duration(left), c.rule.Lockout.After)
	case q.none && c.rule.Missing == MissingRefuse && x.value == empty:
		j.Outcome, j.Why = core.Refused, "the call has no "+c.missingPart(inv)+"; the rule refuses such calls"
	case q.none:
		j.Outcome, j.Why = core.Refused, "the threshold is below one unit, so every call is refused"
	case c.rule.Behavior == TokenBucket:
		inv.JudgeTokens(j, c.tokensOfLocked(x.shard, x, &x.value, now, q), n, q.size)
	case c.rule.Behavior == Throttle:
		wait := x.wait(now, n, q, first)
		inv.JudgeWait(j, wait, wait <= c.rule.MaxWait, c.rule.MaxWait)
		j.About = j.Outcome == core.Refused && first
	case c.rule.Metric == Concurrency:
		if x.inFlightLocked() > q.units-n {
			j.Outcome = core.Refused
		}
	default:
		if c.usedLocked(x, now, q) > q.size-n {
			inv.JudgeRefused(j, c.room(x, now, min(n, q.size), q), n <= q.size)
		}
	}
	m := c.measureLocked(x, now, n, q, first)
	if locked && m.Remaining != nil {
		*m.Remaining = 0
	}
	return m
}

// measureLocked returns how much of its limit a value uses, as a call of n units finds it.
func (c *controller) measureLocked(x *cell, now, n int64, q *quota, first bool) core.Measure {
	perInterval := cmp.Or(c.rule.Unit, "units") + " in " + c.rule.Interval.String()
	if c.calendar != nil {
		perInterval = cmp.Or(c.rule.Unit, "units") + " per " + c.rule.Per.String()
	}
	switch {
	case q.none:
		return engine.MeasureUnits(perInterval, 0, 0)
	case c.rule.Behavior == TokenBucket:
		return engine.MeasureTokens(c.tokensOfLocked(x.shard, x, &x.value, now, q), now, q.size)
	case c.rule.Behavior == Throttle:
		wait := x.wait(now, n, q, first)
		if first && x.queue != nil && !x.queue.Empty() {
			return engine.MeasureTurns(wait, c.rule.MaxWait, nil) // prioritized calls have other turns
		}
		left := x.last().TurnsWithin(now, q.burst, q.cost(1), c.rule.MaxWait)
		return engine.MeasureTurns(wait, c.rule.MaxWait, &left)
	case c.rule.Metric == Concurrency:
		return engine.MeasureUnits(cmp.Or(c.rule.Unit, "units")+" in flight", x.inFlightLocked(), q.units)
	}
	return engine.MeasureUnits(perInterval, c.usedLocked(x, now, q), q.size)
}

// explainRestLocked is like explainCellLocked, but for values without a cell.
func (c *controller) explainRestLocked(inv *engine.Invocation, s *shard, n int64, q *quota, j *core.Judgement) core.Measure {
	m := c.explainCellLocked(inv, &s.rest, n, q, j)
	if q.none || !c.rule.fills() || c.rule.Behavior != Reject || c.calendar != nil || c.windows(&s.rest) {
		return m
	}
	w, now := s.window, inv.Now() // the window limits the rest; see takeFromRestLocked
	if w == nil {
		w, _ = stat.NewWindow(stat.Shape{Interval: c.rule.Interval, Buckets: 1})
	}
	if j.Outcome != core.Refused && !w.Fits(now, n, q.units) {
		wait, known := w.RetryAfter(now, n, q.units)
		inv.JudgeRefused(j, wait, known)
	}
	m = engine.MeasureUnits(m.Of, w.Sum(now), q.units)
	*m.Remaining = w.Room(now, q.units)
	return m
}
