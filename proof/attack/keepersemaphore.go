package main

import (
	"fmt"
	"time"
)

// semaphoreKeeper is for a limit on what runs at once.
type semaphoreKeeper struct {
	limit
	runners bool // it counts calls that run, not those that wait
	holds   bool // it counts every call that waits
	line    time.Duration
	held    map[*call]bool // whether it is sure
}

func (k *semaphoreKeeper) inUse(l *ledger, p place) (least, most int64) {
	for _, c := range l.waiting { // another rule on the same semaphore may have taken for it
		if _, known := k.held[c]; !known && k.holds && p.counts(c) {
			most += c.units
		}
	}
	for c, sure := range k.held {
		if p.counts(c) {
			most += c.units
			if sure {
				least += c.units
			}
		}
	}
	return least, most
}

func (k *semaphoreKeeper) judge(l *ledger, c *call) opinion {
	p, _ := k.where(l, c)
	least, most := k.inUse(l, p)
	switch {
	case k.high == 0:
		return refuse
	case most+c.units <= k.low:
		return opinion{passes: true, most: k.line}
	case k.line > 0 && c.units <= k.high:
		return opinion{passes: true, refuses: true, most: k.line}
	case least+c.units > k.high && !(k.runners && least == 0):
		return refuse
	}
	return either
}

func (k *semaphoreKeeper) over(l *ledger, c *call) string {
	p, _ := k.where(l, c)
	if least, _ := k.inUse(l, p); least > k.high && !k.looks {
		return fmt.Sprintf("%d units of %d in flight", least, k.high)
	}
	return ""
}

func (k *semaphoreKeeper) took(_ *ledger, c *call) {
	if !k.looks && !k.runners {
		k.held[c] = k.holds || c.sleeps == 0
	}
}

func (k *semaphoreKeeper) ran(_ *ledger, c *call) {
	if _, ok := k.role(c); ok {
		k.held[c] = true
	}
}

func (k *semaphoreKeeper) left(_ *ledger, c *call) { delete(k.held, c) }

func (k *semaphoreKeeper) follow(l *ledger, before keeper) {
	k.held = make(map[*call]bool)
	for _, c := range l.passed {
		if _, ok := k.role(c); ok && c.running {
			k.held[c] = true
		}
	}
	old, ok := before.(*semaphoreKeeper)
	for _, c := range l.waiting {
		if _, counts := k.role(c); counts && !k.runners {
			k.held[c] = ok && old.same == k.same && old.held[c]
		}
	}
}

// queueKeeper is for an isolation rule. All of them count the same calls, and the tightest
// that is about a call decides.
type queueKeeper struct {
	semaphoreKeeper
	decides func(c *call) bool
	longest int // the queue
}

func (k *queueKeeper) judge(l *ledger, c *call) opinion {
	if !k.decides(c) {
		return pass
	}
	if k.line == 0 || l.sleepy {
		return k.semaphoreKeeper.judge(l, c)
	}
	// Whoever waits is in the queue, and holds nothing.
	inUse, queued, ahead := int64(0), 0, false
	for held := range k.held {
		if held.running && held.resource == c.resource {
			inUse += held.units
		}
	}
	for _, w := range l.waiting {
		if w.resource == c.resource {
			queued++
			ahead = ahead || w.prioritized || !c.prioritized
		}
	}
	switch fits := inUse+c.units <= k.high; {
	case c.units > k.high:
		return refuse
	case !ahead && fits && queued == 0:
		return pass
	case queued < k.longest:
		return opinion{passes: true, most: k.line}
	case !ahead && fits: // whoever waits may have been overtaken often enough
		return either
	}
	return refuse
}

func (k *queueKeeper) follow(l *ledger, before keeper) {
	if old, ok := before.(*queueKeeper); ok {
		k.semaphoreKeeper.follow(l, &old.semaphoreKeeper)
		return
	}
	k.semaphoreKeeper.follow(l, nil)
}
