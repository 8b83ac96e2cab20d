package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/lending"
)

// checker holds the compiled hotspot rules of one resource. Safe for concurrent use.
type checker struct {
	family.Rules[controller] // without the rules that a cluster shares

	sharing []*controller      // enforced rules whose limits a cluster shares
	shared  family.SharedRules // the same, in the order in which they are asked
	plain   *controller        // the only enforced rule, if it is plain; otherwise nil
	costs   engine.Coster      // rules with a unit; nil if there are none
}

// Ask returns the first refusal. It takes nothing.
func (rs *checker) Ask(inv *engine.Invocation) engine.Verdict { return ask(rs.Holding, inv) }

func ask(rules []*controller, inv *engine.Invocation) engine.Verdict {
	for _, c := range rules {
		n := c.amount(inv)
		if n == 0 {
			continue
		}
		all := c.occurrences(inv)
		for _, o := range all {
			if block := c.ask(inv.Now(), o.Value, c.unitsOf(o, n), inv.Prioritized(), c.planOf(inv)); block != nil {
				c.watch(all, inv) // a leased rule takes nothing here
				c.noticeRefusal(inv)
				return engine.Verdict{Block: block}
			}
		}
	}
	return engine.Verdict{}
}

// Take lets every rule take, for every value of the call. It returns the first refusal or, if there
// is none, the longest wait.
func (rs *checker) Take(inv *engine.Invocation) engine.Verdict {
	for _, c := range rs.sharing {
		if (!c.record.Found.Load() || c.plans != nil) && (c.home == nil || c.amount(inv) > 0) {
			c.watch(c.occurrences(inv), inv)
		}
	}
	if c := rs.plain; c != nil {
		if v, sole := c.sole(inv); sole {
			return engine.Verdict{Block: c.takePlain(inv, inv.Lane(), inv.Now(), inv.Units(), v)}
		}
		if v := rs.Ask(inv); v.Block != nil { // else a value could pass in a refused call
			return v
		}
	}
	return take(rs.Holding, inv)
}

func take(rules []*controller, inv *engine.Invocation) engine.Verdict {
	var longest engine.Verdict
	for _, c := range rules {
		n := c.amount(inv)
		if n == 0 {
			continue
		}
		all := c.occurrences(inv)
		c.watch(all, inv)
		for _, o := range all {
			wait, block := c.take(inv, o.Value, c.unitsOf(o, n))
			if block != nil {
				c.noticeRefusal(inv)
				return engine.Verdict{Block: block}
			}
			if wait > longest.Wait {
				longest = engine.Verdict{Wait: wait, By: c.refusal}
			}
		}
	}
	return longest
}

// Shadow lets every shadow rule take. Units taken before a rule would have refused are returned
// here.
func (rs *checker) Shadow(inv *engine.Invocation) {
	shadow(rs.Shadows, inv)
	if len(rs.Notices) > 0 {
		rs.notice(inv)
	}
}

func shadow(rules []*controller, inv *engine.Invocation) {
	for _, c := range rules {
		if c.member != nil {
			if c.home == nil || c.amount(inv) > 0 {
				c.watch(c.occurrences(inv), inv)
			}
			family.Rehearse(inv, c.record, c.rule.Unit, c.SharedLimit)
			continue
		}
		n := c.amount(inv)
		if n == 0 {
			continue
		}
		before := inv.Reservations()
		all := c.occurrences(inv)
		c.watch(all, inv)
		for _, o := range all {
			if _, block := c.take(inv, o.Value, c.unitsOf(o, n)); block != nil {
				inv.GiveBackFrom(before)
				c.record.ShadowBlocked.Add(inv.Lane(), 1)
				break
			}
		}
	}
}

// Direct reports whether exactly one rule is enforced and that rule is plain.
func (rs *checker) Direct() bool { return rs.plain != nil }

// ask returns nil if n units of a value would pass as of now, prioritized or not, otherwise the
// refusal.
func (c *controller) ask(now int64, v argument.Value, n int64, first bool, p *plan) *core.BlockError {
	q, hash := c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	s.settle(x)
	if x != nil && c.moves {
		q = c.limitLocked(x, p, q, now)
	}
	if _, locked := c.lockedOutLocked(x, now); !locked && c.fitsLocked(s, x, &v, now, n, q, first) {
		return nil
	}
	if x == nil {
		c.found(&v)
		x = &s.rest
		if q != &c.quota || c.asks || c.rule.locksOut() { // a value that an exception matches should be visible
			x = s.obtainLocked(v, hash, now, q, c)
			q = c.limitLocked(x, p, q, now)
		}
	}
	c.refusedLocked(x, now)
	x.heat.add(now, min(n, maxHeat))
	return c.refuseLocked(x, n, q)
}

// fitsLocked is like ask, but for one cell. A nil x stands for a value without a cell, which gets
// one if there is room; only taking can tell.
func (c *controller) fitsLocked(s *shard, x *cell, v *argument.Value, now, n int64, q *quota, first bool) bool {
	switch {
	case q.none:
		return false
	case c.rule.Behavior == TokenBucket:
		b := c.tokensOfLocked(s, x, v, now, q)
		return b.Fits(now, n, q.size)
	case c.rule.Behavior == Throttle:
		if x != nil {
			return x.wait(now, n, q, first) <= c.rule.MaxWait
		}
		return q.wait(s.firstAfter(q), now, n) <= c.rule.MaxWait
	case x == nil && c.returns(v, now):
		return c.leftInLog(v, now, q) >= n
	case x == nil && c.rule.Metric == QPS && (c.calendar != nil || c.windows(&s.rest)):
		// A new cell starts as a copy of the rest.
		return n <= q.size && (q.private || c.usedLocked(&s.rest, now, q) <= q.size-n)
	case x == nil:
		begin := s.newCell(now, q)
		x = &begin
	}
	if c.rule.Metric == Concurrency {
		return x.inFlightLocked() <= q.units-n
	}
	return c.usedLocked(x, now, q) <= q.size-n
}

// takePlain is like Take, but for a call with at most one value (nil for none) under a rule that
// keeps a bucket for each value. It leaves out the parts of take that don't apply here, and uses the
// units lent to lanes. Granted units are reserved on inv.
func (c *controller) takePlain(inv *engine.Invocation, lane uint32, now, n int64, v *argument.Value) (block *core.BlockError) {
	if v == nil {
		return nil
	}
	hash := v.Hash()
	s := c.values.shard(hash)
	var p *plan
	if c.plans != nil {
		p = c.planOf(inv)
	}
	if h := s.hot.Load(); h != nil && h.hash == hash && h.rule == c && h.value == *v && (h.plan == p || h.plan.isAnswer()) {
		if decided, block := h.take(inv, lane, now, n); decided {
			return block
		}
	}
	waited := !s.mu.TryLock()
	if waited {
		s.mu.Lock()
	}
	x, q := s.cells.find(v, hash), &c.quota
	if x == nil {
		s.mu.Unlock()
		held, block := c.grant(now, *v, n, p)
		if block == nil {
			inv.Reserve(held)
		}
		return block
	}
	if c.varies {
		q = c.limitLocked(x, p, c.quotaOf(*v, p), now)
	}
	if waited || lending.Always || s.hot.Load() != nil {
		return c.takeContendedLocked(inv, lane, now, n, x, q, waited)
	}
	x.heat.add(now, n)
	if c.rule.Behavior == TokenBucket {
		return c.takeTokenLocked(inv, x, now, n, q)
	}
	w := x.strict
	switch {
	case w == nil && !c.windows(x):
		return c.takeFilledLocked(inv, x, now, n, q)
	case q.none:
	case w == nil:
		w = c.windowOf(x, now)
	case now > w.until:
		w.roll(now)
	}
	if !q.none && w.used <= q.size-n {
		bucket := w.head
		w.add(n)
		x.passed++
		s.mu.Unlock()
		inv.ReserveUnits(w, n, bucket)
		return nil
	}
	x.refused++
	block = c.refuseLocked(x, n, q)
	s.mu.Unlock()
	return block
}

// takeContendedLocked is like takePlain, but for a shard where a value lends, or may begin to. It
// releases the lock.
func (c *controller) takeContendedLocked(inv *engine.Invocation, lane uint32, now, n int64, x *cell, q *quota, waited bool) *core.BlockError {
	s := x.shard
	s.collect(c, x, now, n)
	held, block := c.decideLocked(x, now, n, q)
	if c.rule.Behavior == Reject {
		s.lend(c, x, q, lane, now, block, waited)
	}
	s.mu.Unlock()
	if block == nil {
		inv.Reserve(held)
	}
	return block
}

// take decides whether to grant n units for a value, and reserves the granted units on the
// invocation.
func (c *controller) take(inv *engine.Invocation, v argument.Value, n int64) (wait time.Duration, block *core.BlockError) {
	switch {
	case c.rule.Unit != "":
		return c.takeCost(inv, v, n)
	case c.rule.Behavior == Throttle:
		return c.takeTurn(inv, v, n)
	}
	held, block := c.grant(inv.Now(), v, n, c.planOf(inv))
	if block == nil {
		inv.Reserve(held)
	}
	return 0, block
}

// grant checks whether n units of a value fit and takes them in one step, under the lock of the
// value's shard.
func (c *controller) grant(now int64, v argument.Value, n int64, p *plan) (held engine.Reservation, block *core.BlockError) {
	q, hash := c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.obtainLocked(v, hash, now, q, c)
	if c.moves {
		q = c.limitLocked(x, p, q, now)
	}
	return c.decideLocked(x, now, n, q)
}

// decideLocked completes grant after the cell is found.
func (c *controller) decideLocked(x *cell, now, n int64, q *quota) (held engine.Reservation, block *core.BlockError) {
	x.heat.add(now, n)
	ok := false
	if _, locked := c.lockedOutLocked(x, now); !locked {
		held, ok = c.takeFromLocked(x, now, n, q)
	}
	if !ok {
		c.refusedLocked(x, now)
		return held, c.refuseLocked(x, n, q)
	}
	x.passed++
	return held, nil
}

// takeTurn takes a turn in the queue of a value, under the lock of its shard.
func (c *controller) takeTurn(inv *engine.Invocation, v argument.Value, n int64) (wait time.Duration, block *core.BlockError) {
	p := c.planOf(inv)
	now, q, hash := inv.Now(), c.quotaOf(v, p), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.obtainLocked(v, hash, now, q, c)
	if c.moves {
		q = c.limitLocked(x, p, q, now)
	}
	x.heat.add(now, n)
	if _, locked := c.lockedOutLocked(x, now); !locked && !q.none {
		if wait, ok := inv.TakeTurn(x.turnsLocked(now, q), q.cost(n), c.rule.MaxWait, c.rule.Mode != spec.Shadow); ok {
			x.passed++
			return wait, nil
		}
	}
	c.refusedLocked(x, now)
	return 0, c.refuseLocked(x, n, q)
}

// takeFromLocked is like grant, but for a cell of another rule.
func (c *controller) takeFromLocked(x *cell, now, n int64, q *quota) (held engine.Reservation, ok bool) {
	if c.rule.Behavior == TokenBucket {
		return x.takeTokensLocked(now, n, q)
	}
	if c.calendar != nil {
		return c.takeQuotaLocked(x, now, n, q)
	}
	var w *window
	if c.rule.Metric == QPS && !q.none && c.windows(x) {
		w = c.windowOf(x, now)
	}
	if !c.fitsLocked(x.shard, x, &x.value, now, n, q, false) {
		return held, false
	}
	switch {
	case c.rule.Metric == Concurrency:
		x.held += n
		return engine.Reservation{Holder: (*permitUnits)(x), Units: n, UntilExit: true}, true
	case w != nil:
		w.add(n)
		return engine.Reservation{Holder: w, Units: n, Token: w.head}, true
	case x.isRest(): // the rest is limited by its window
		return x.shard.takeFromRestLocked(now, n, q, c)
	}
	x.useLocked(x.bucket.at(now, int64(c.rule.Interval), q), n)
	return engine.Reservation{Holder: (*bucketUnits)(x), Units: n, Token: x.bucket.filled}, true
}
