package hotspot

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Rules are the hotspot rules of one resource, compiled. They are safe for concurrent
// use.
type Rules struct {
	controllers []*controller // as declared
	plain       *controller   // the only one, if it is plain; or nil
}

// Ask returns the first refusal, taking nothing. A shadow rule refuses nobody.
func (rs *Rules) Ask(inv *core.Invocation) core.Verdict {
	for _, c := range rs.controllers {
		if c.rule.Mode == core.Shadow {
			continue
		}
		for _, o := range c.occurrences(inv) {
			if block := c.ask(inv.Now(), o.Value, inv.Units()*o.Times); block != nil {
				return core.Verdict{Block: block}
			}
		}
	}
	return core.Verdict{}
}

// Take lets every rule take, for every value of the call. It returns the first refusal,
// or else the longest wait. What was taken before a refusal is on the invocation: it is
// given back with the call, or here if the rule only rehearses.
func (rs *Rules) Take(inv *core.Invocation) core.Verdict {
	if c := rs.plain; c != nil {
		if v, sole := c.sole(inv); sole {
			return core.Verdict{Block: c.takePlain(inv, v)}
		}
	}
	var longest core.Verdict
	for _, c := range rs.controllers {
		before := inv.Reservations()
		for _, o := range c.occurrences(inv) {
			wait, block := c.take(inv, o.Value, inv.Units()*o.Times)
			if block == nil {
				if c.rule.Mode != core.Shadow && wait > longest.Wait {
					longest = core.Verdict{Wait: wait, By: c.refusal}
				}
				continue
			}
			if c.rule.Mode != core.Shadow {
				return core.Verdict{Block: block}
			}
			inv.GiveBackFrom(before)
			c.rehearsed.Add(inv.Lane(), 1)
			break
		}
	}
	return longest
}

// DecidesAtOnce reports whether Decide does what Ask and Take do: where there is one rule,
// and it is plain.
func (rs *Rules) DecidesAtOnce() bool { return rs.plain != nil }

// Decide lets the rule decide. A call of several values takes for none if it is refused for
// one: what it took for the others is given back here.
func (rs *Rules) Decide(inv *core.Invocation) *core.BlockError {
	if v, sole := rs.plain.sole(inv); sole {
		return rs.plain.takePlain(inv, v)
	}
	if v := rs.Ask(inv); v.Block != nil {
		return v.Block
	}
	before := inv.Reservations()
	v := rs.Take(inv)
	if v.Block != nil {
		inv.GiveBackFrom(before)
	}
	return v.Block
}

// Idle reports whether all of the rules can be forgotten, see core.Resource.
func (rs *Rules) Idle(now int64) bool {
	for _, c := range rs.controllers {
		if !c.idle(now) {
			return false
		}
	}
	return true
}

// ask returns nil if n units of a value would pass as things stand, or else the refusal.
func (c *controller) ask(now int64, v core.Value, n int64) *core.BlockError {
	q, hash := c.quotaOf(v), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.find(&v, hash)
	if x == nil {
		begin := s.newCell(now, q) // if there is room; who takes will see
		if c.fits(&begin, now, n, q) {
			return nil
		}
		x = &s.rest
		if q != &c.quota { // a value that the rule names is to be seen
			x = s.add(v, hash, now, q)
			x.named = true
		}
	} else if c.fits(x, now, n, q) {
		return nil
	}
	x.refused++
	x.heat.add(now, n)
	return c.refuse(x)
}

// fits is ask for a cell. The caller holds the lock of its shard.
func (c *controller) fits(x *cell, now int64, n int64, q *quota) bool {
	switch {
	case q.none:
		return false
	case c.rule.Metric == Concurrency:
		return x.inFlight() <= q.units-n
	case c.rule.Behavior == Throttle:
		_, wait := x.last().next(now, cost(n, q.perUnit))
		return wait <= c.rule.MaxWait
	}
	return x.bucket.at(now, int64(c.rule.Interval), q).fits(n, q)
}

// takePlain is Take for a call with one value, nil for none, where the rule has a bucket
// for each. It is the same as take, with nothing in it that doesn't matter here.
func (c *controller) takePlain(inv *core.Invocation, v *core.Value) *core.BlockError {
	if v == nil {
		return nil
	}
	now, n := inv.Now(), inv.Units()
	q, hash := &c.quota, v.Hash()
	if c.exceptions != nil {
		q = c.quotaOf(*v)
	}
	s := c.values.shard(hash)
	s.mu.Lock()
	x := s.cells.find(v, hash)
	if x == nil {
		s.mu.Unlock()
		_, block := c.take(inv, *v, n)
		return block
	}
	x.heat.add(now, n)
	if b := x.bucket.at(now, int64(c.rule.Interval), q); b.fits(n, q) {
		b.used += n
		x.bucket = b
		x.passed++
		s.mu.Unlock()
		inv.ReserveUnits((*bucketUnits)(x), n, b.filled)
		return nil
	}
	x.refused++
	block := c.refuse(x)
	s.mu.Unlock()
	return block
}

// take decides about n units of a value, and reserves on the invocation what it grants.
func (c *controller) take(inv *core.Invocation, v core.Value, n int64) (wait time.Duration, block *core.BlockError) {
	held, wait, block := c.grant(inv.Now(), v, n)
	if block == nil {
		inv.Reserve(held)
	}
	return wait, block
}

// grant looks whether n units of a value fit and takes them in one step, under the lock
// of the value's shard.
func (c *controller) grant(now int64, v core.Value, n int64) (held core.Reservation, wait time.Duration, block *core.BlockError) {
	q, hash := c.quotaOf(v), v.Hash()
	s := c.values.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.obtain(v, hash, now, q, c)
	x.heat.add(now, n)
	held, wait, ok := c.takeFrom(x, now, n, q)
	if !ok {
		x.refused++
		return held, 0, c.refuse(x)
	}
	x.passed++
	return held, wait, nil
}

// takeFrom is grant for a cell. The caller holds the lock of its shard.
func (c *controller) takeFrom(x *cell, now, n int64, q *quota) (held core.Reservation, wait time.Duration, ok bool) {
	if !c.fits(x, now, n, q) {
		return held, 0, false
	}
	switch {
	case c.rule.Metric == Concurrency:
		x.held += n
		return core.Reservation{Holder: (*permitUnits)(x), Units: n, UntilExit: true}, 0, true
	case c.rule.Behavior == Throttle:
		before := x.turn
		x.turn, wait = x.last().next(now, cost(n, q.perUnit))
		return (*turnUnits)(x).reserved(x.turn, before), wait, true
	case x.isRest(): // whose limit is in its window
		held, ok = x.shard.takeFromRest(now, n, c)
		return held, 0, ok
	}
	x.bucket = x.bucket.at(now, int64(c.rule.Interval), q)
	x.bucket.used += n
	return core.Reservation{Holder: (*bucketUnits)(x), Units: n, Token: x.bucket.filled}, 0, true
}
