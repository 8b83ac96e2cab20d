package main

import (
	"fmt"
	"math"
	"slices"
)

// tokenLog is what a token bucket must have given: it fills all the time, whoever comes. How
// much is missing in it is counted in the time after which it is full, in nanoseconds.
type tokenLog struct {
	// murky says that it may have given some that nobody knows of.
	murky  bool
	events []tokenEvent // in order, from when it was full last
}

// tokenEvent is a call that took, or what a unit costs from then on.
type tokenEvent struct {
	call  *call // nil if it is a cost
	at    float64
	units int64
	gone  bool // the call left after others had come: up to all of it may be back
	cost  float64
}

func newTokenLog(murky bool, cost float64) *tokenLog {
	return &tokenLog{murky: murky, events: []tokenEvent{{at: never, cost: cost}}}
}

// missing is how much is, at the least and at the most, when one unit costs so much.
func (t *tokenLog) missing(now int64) (least, most, cost float64) {
	if t.murky {
		most = math.Inf(1)
	}
	last := float64(never)
	pass := func(at float64) {
		least, most, last = max(0, least-(at-last)), max(0, most-(at-last)), at
	}
	for i, e := range t.events {
		pass(e.at)
		switch {
		case e.call == nil && i > 0 && !math.IsInf(cost, 1): // so many units as before
			least, most, cost = least/cost*e.cost, most/cost*e.cost, e.cost
		case e.call == nil:
			cost = e.cost
		default:
			most += float64(e.units) * cost
			if !e.gone {
				least += float64(e.units) * cost
			}
		}
	}
	pass(sinceStart(now))
	return least, most, cost
}

// exact reports whether all that is missing is a sum of whole nanoseconds: a bucket and its log
// add up fractions each in its own way.
func (t *tokenLog) exact() bool {
	return !slices.ContainsFunc(t.events[1:], func(e tokenEvent) bool { return e.call == nil }) &&
		whole(t.events[0].cost)
}

// judge is what a bucket that holds size says to a call of so many units.
func (t *tokenLog) judge(now, units, size int64) opinion {
	least, most, cost := t.missing(now)
	if units > size {
		return refuse
	}
	off := 0.0
	if !t.exact() {
		off = hair
	}
	room := float64(size-units) * cost
	return opinion{passes: least <= room+off, refuses: most > room-off}
}

// over says how a bucket that holds size has given more than it has, "" if it hasn't.
func (t *tokenLog) over(now, size int64) string {
	if least, _, cost := t.missing(now); least > float64(size)*cost+hair {
		return fmt.Sprintf("%.3f units are missing in a bucket that holds %d", least/cost, size)
	}
	return ""
}

func (t *tokenLog) take(c *call, now, units int64) {
	if _, most, cost := t.missing(now); most == 0 {
		t.events = []tokenEvent{{at: never, cost: cost}}
	}
	t.events = append(t.events, tokenEvent{call: c, at: sinceStart(now), units: units})
}

// leave gives back what a call took which never ran: all of it if nobody has come at a later
// instant, and else perhaps less.
func (t *tokenLog) leave(c *call) {
	latest := t.events[len(t.events)-1].at
	t.events = slices.DeleteFunc(t.events, func(e tokenEvent) bool { return e.call == c && e.at == latest })
	for i := range t.events {
		if e := &t.events[i]; e.call == c {
			e.gone = true
		}
	}
}

// refill is that a unit costs something else from now on; nothing changes where none comes back.
func (t *tokenLog) refill(now int64, cost float64) {
	if _, _, before := t.missing(now); before != cost && !math.IsInf(cost, 1) {
		t.events = append(t.events, tokenEvent{at: sinceStart(now), cost: cost})
	}
}

// checkRetry says what is wrong with being told to come again after so long, "" if nothing is.
func (t *tokenLog) checkRetry(now, after, units, size int64, known bool) string {
	switch {
	case known != (units <= size):
		return fmt.Sprintf("of %d units in a bucket that holds %d; when to come again is known: %v", units, size, known)
	case known && !t.judge(now+after, 1, size).passes:
		return "and then not a single unit fits"
	case known && after > 0 && !t.judge(now+after-1, 1, size).refuses:
		return "and one unit fits before"
	}
	return ""
}

// tokenKeeper is for a flow rule that is a token bucket.
type tokenKeeper struct {
	limit
	cost    float64 // ns a unit
	size    int64
	buckets map[place]*tokenLog
	murky   bool // it may remember what nobody knows of
}

func (k *tokenKeeper) at(l *ledger, c *call) *tokenLog {
	p, _ := k.where(l, c)
	t := k.buckets[p]
	if t == nil {
		t = newTokenLog(k.murky, k.cost)
		k.buckets[p] = t
	}
	return t
}

func (k *tokenKeeper) judge(l *ledger, c *call) opinion {
	if math.IsInf(k.cost, 1) {
		return refuse
	}
	return k.at(l, c).judge(l.now, c.units, k.size)
}

func (k *tokenKeeper) over(l *ledger, c *call) string { return k.at(l, c).over(l.now, k.size) }
func (k *tokenKeeper) took(l *ledger, c *call)        { k.at(l, c).take(c, l.now, c.units) }

func (k *tokenKeeper) left(_ *ledger, c *call) {
	if c.passedAt == 0 {
		for _, t := range k.buckets {
			t.leave(c)
		}
	}
}

func (k *tokenKeeper) follow(l *ledger, before keeper) {
	k.buckets = make(map[place]*tokenLog)
	if old, ok := before.(*tokenKeeper); ok && old.same == k.same {
		k.buckets, k.murky = old.buckets, old.murky
		for _, t := range k.buckets {
			t.refill(l.now, k.cost)
		}
		return
	}
	k.murky = before != nil || l.known[k.is()]
}
