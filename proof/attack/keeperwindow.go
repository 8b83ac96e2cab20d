package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// windowKeeper is for a limit on what passes in an interval.
type windowKeeper struct {
	limit
	shape
	borrows bool
	windows map[place]*windowLog
	// since is when the rule got this shape, if it had another one before: windows that
	// were not looked at since may be made of what that one held.
	since int64
}

// occupyTimeout is the engine's default.
const occupyTimeout = 500 * time.Millisecond

// at is the window of a place. Where that varies, the engine makes one when a call needs it first:
// as long as no call has taken there, it may still begin with what is known of the calls by then.
func (k *windowKeeper) at(l *ledger, p place) *windowLog {
	w := k.windows[p]
	switch {
	case w != nil:
	case k.varies:
		w = l.seeded(p, k.shape, math.MaxInt64)
	default:
		w = l.seeded(p, k.shape, k.since)
		k.windows[p] = w
	}
	w.forget(l.now)
	return w
}

func (k *windowKeeper) judge(l *ledger, c *call) opinion {
	p, _ := k.where(l, c)
	w := k.at(l, p)
	if k.high == 0 {
		return refuse
	}
	surely, perhaps := w.fits(w.number(l.now), c.units, k.low, k.high)
	switch {
	case surely:
		return pass
	case perhaps || k.low != k.high:
		return opinion{passes: true, refuses: true, most: occupyTimeout}
	case !k.borrows || !c.prioritized:
		return refuse
	}
	wait, ok, known := w.borrow(l.now, c.units, k.high, occupyTimeout)
	switch {
	case !known || len(l.keepers) > 1: // which may move what it borrows
		return opinion{passes: true, refuses: true, most: occupyTimeout}
	case !ok:
		return refuse
	}
	return opinion{passes: true, least: wait, most: wait}
}

// over looks at the present and at every coming bucket.
func (k *windowKeeper) over(l *ledger, c *call) string {
	p, _ := k.where(l, c)
	w := k.at(l, p)
	if _, perhaps := w.fits(w.number(l.now), 0, k.low, k.high); perhaps || k.looks {
		return ""
	}
	least, _ := w.sums(w.number(l.now))
	return fmt.Sprintf("%d units of %d in the window", least, k.high)
}

// took charges the call: now, or where it borrowed in the bucket in which it will run.
func (k *windowKeeper) took(l *ledger, c *call) {
	if k.looks {
		return
	}
	p, _ := k.where(l, c)
	w := k.at(l, p)
	k.windows[p] = w
	now := w.number(l.now)
	put := charge{call: c, units: c.units, first: now, last: now, sure: true}
	if c.sleeps > 0 && c.prioritized {
		put.first, put.last = k.bucketsOf(l, c, w)
	}
	w.add(put)
}

// bucketsOf is from which to which bucket a call that sleeps, and may have borrowed, is charged.
func (k *windowKeeper) bucketsOf(l *ledger, c *call, w *windowLog) (first, last int64) {
	now := w.number(l.now)
	surely, perhaps := w.fits(now, c.units, k.low, k.high)
	if first = now; !perhaps {
		first = now + 1
	}
	furthest := now + int64(w.buckets) // it looks no further ahead
	if l.watched {                     // when it wakes first doesn't tell when it runs
		return first, furthest
	}
	run := min(w.number(l.now+int64(c.sleeps)), furthest)
	then, thenPerhaps := w.fits(run, c.units, k.low, k.high)
	last = max(run, w.number(l.now+int64(occupyTimeout))) // wherever it borrowed
	if surely || !k.borrows {
		last = run // it stays, or moves
	}
	if surely && !thenPerhaps {
		last = now
	}
	only := c.opinion.least == c.opinion.most && c.sleeps == c.opinion.most
	if !slices.ContainsFunc(l.keepers, mayQueue) { // it sleeps until the bucket in which it runs
		p, _ := k.where(l, c)
		last, only = min(last, run), k.allFit(l, c, p, run)
	}
	if only && then {
		return run, run
	}
	return first, last
}

// allFit reports whether the call surely fits in a bucket by all rules that count in this
// window: its limit is the lowest of theirs.
func (k *windowKeeper) allFit(l *ledger, c *call, p place, bucket int64) bool {
	for _, other := range l.keepers {
		if o, ok := other.(*windowKeeper); ok && o.shape == k.shape && !o.looks && o.concerns(l, c) {
			if there, _ := o.where(l, c); there != p {
				continue
			}
			if surely, _ := o.at(l, p).fits(bucket, c.units, o.low, o.high); !surely {
				return false
			}
		}
	}
	return true
}

// mayQueue reports whether a rule may have calls wait for a turn or a permit.
func mayQueue(k keeper) bool {
	q, ok := k.(*queueKeeper)
	return turns(k) || ok && q.line > 0
}

// ran charges a call where no rule has: it is counted when it passes.
func (k *windowKeeper) ran(l *ledger, c *call) {
	p, ok := k.role(c)
	if !ok {
		return
	}
	if k.windows[p] == nil && k.varies {
		return // it will be seeded when it is needed first
	}
	w := k.at(l, p)
	now := w.number(l.now)
	if w.had[c] {
		w.ran(c, now, !k.varies)
		return
	}
	w.add(charge{call: c, units: c.units, first: now, last: now, sure: !k.varies})
}

// left gives back what a call took that never ran.
func (k *windowKeeper) left(_ *ledger, c *call) {
	if c.passedAt != 0 {
		return
	}
	for _, w := range k.windows {
		w.charges = slices.DeleteFunc(w.charges, func(ch charge) bool { return ch.call == c })
	}
}

func (k *windowKeeper) follow(l *ledger, before keeper) {
	k.windows = make(map[place]*windowLog)
	if old, ok := before.(*windowKeeper); ok && old.same == k.same {
		if k.since = old.since; old.shape != k.shape {
			k.since = l.now
		}
		for p, w := range old.windows {
			w.forget(l.now)
			if w.shape != k.shape {
				w = w.reshaped(k.shape, l.now)
			}
			k.windows[p] = w
		}
	}
	for _, c := range l.passed {
		if p, ok := k.role(c); ok && !k.varies { // else it is made for the first call that comes
			k.at(l, p)
		}
	}
}
