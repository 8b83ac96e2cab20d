package main

import (
	"iter"
	"math"
	"slices"
	"time"
)

// turnKeeper is for a throttle.
type turnKeeper struct {
	limit
	low, high float64 // ns a unit
	maxWait   time.Duration
	queues    map[place]*turnLog
	murky     bool    // it may remember turns that nobody knows of
	unknown   []*call // that may have some of them
}

func (k *turnKeeper) at(p place) *turnLog {
	q := k.queues[p]
	if q == nil {
		if q = newTurnLog(); k.murky {
			q = murkyTurnLog(k.unknown)
		}
		k.queues[p] = q
	}
	return q
}

func (k *turnKeeper) judge(l *ledger, c *call) opinion {
	if math.IsInf(k.high, 1) {
		return refuse
	}
	p, _ := k.where(l, c)
	return k.at(p).judge(l.now, k.low*float64(c.units), k.high*float64(c.units), c.prioritized, k.maxWait)
}

func (k *turnKeeper) took(l *ledger, c *call) {
	p, _ := k.where(l, c)
	k.at(p).give(c, l.now, k.low*float64(c.units), k.high*float64(c.units))
}

func (k *turnKeeper) left(l *ledger, c *call) {
	if c.passedAt == 0 {
		for _, q := range k.queues {
			q.leave(c, l.now)
		}
	}
}

func (k *turnKeeper) follow(l *ledger, before keeper) {
	k.queues = make(map[place]*turnLog)
	if old, ok := before.(*turnKeeper); ok && old.same == k.same {
		k.queues, k.murky, k.unknown = old.queues, old.murky, old.unknown
		return
	}
	k.murky, k.unknown = before != nil || l.known[k.is()], slices.Clone(l.waiting)
}

// turnsOf yields the turns that a rule has given, of each of its queues.
func turnsOf(k keeper) iter.Seq[*turnLog] {
	return func(yield func(*turnLog) bool) {
		switch k := k.(type) {
		case *turnKeeper:
			for _, q := range k.queues {
				if !yield(q) {
					return
				}
			}
		case *valueKeeper:
			for _, v := range k.values {
				if !yield(v.queue) {
					return
				}
			}
		}
	}
}
