package main

import (
	"math"
	"slices"
	"time"
)

// turnLog is the turns that a throttle must have given. Times are nanoseconds since the
// clocks of rounds began, with a fraction.
type turnLog struct {
	came    []turn  // in order, the latest of those that have come
	waiting []turn  // in order, unless it is loose
	loose   bool    // somebody who waits was overtaken, or may have been: only bounds are known
	tail    float64 // when the last of them has its turn at the latest, if it is loose
	shared  bool    // others that are logged elsewhere queue with these: turns may come later than here
	parts   bool    // some turn cost a fraction of a nanosecond: sums may be a hair off, also whole ones
	bounded bool    // how long calls wait here is bounded by what their opinion says
	unknown []*call // those that may wait here without a turn in the log, since the rule had a queue before
}

// turn is the turn of a call that waits for it. It lies between two times.
type turn struct {
	call        *call
	least, most float64
	low, high   float64 // cost
}

// hair is what sums of fractions of a nanosecond may be off by.
const hair = 4

// never is before every turn.
const never = -1e18

// newTurnLog returns one that has given no turn.
func newTurnLog() *turnLog { return &turnLog{came: []turn{{least: never, most: never}}} }

// murkyTurnLog returns one that may have given turns that nobody knows of, perhaps to some who
// still wait.
func murkyTurnLog(waiting []*call) *turnLog {
	return &turnLog{came: []turn{{least: never, most: -never}}, unknown: waiting}
}

func sinceStart(t int64) float64 { return float64(t - start.UnixNano()) }

// whole reports whether a cost is in whole nanoseconds.
func whole(cost float64) bool { return cost == math.Trunc(cost) }

// wait is how long a call would wait that comes now and costs from low to high. One that is
// prioritized may be next, or last.
func (q *turnLog) wait(now int64, low, high float64, first bool) (least, most float64) {
	q.pass(now)
	at := sinceStart(now)
	least, most = q.last(at)
	if first {
		least = q.overtakable()
	}
	return max(0, least+low-at), max(0, most+high-at)
}

// last is the turn that the next one comes after, or will when those that wait have had theirs.
// Who waits for something else besides may have had it: where the order isn't known, nobody is
// sure to be behind one whose turn may have come.
func (q *turnLog) last(at float64) (least, most float64) {
	least, most = q.latest()
	if n := len(q.waiting); n > 0 && !q.loose {
		return q.waiting[n-1].least, q.waiting[n-1].most
	}
	if q.loose {
		for _, t := range q.waiting {
			if t.least > at {
				least += t.low
			}
		}
		most = max(most, q.tail)
	}
	return least, most
}

// latest is the turn that came last. Whether one counts that came for a call which gave
// up after it is left open.
func (q *turnLog) latest() (least, most float64) {
	return q.came[len(q.came)-1].least, q.came[len(q.came)-1].most
}

// overtakable is the earliest that the turn can be which a prioritized call comes after. Where
// others queue as well, one that has come here may still be to come: only who runs has had it.
func (q *turnLog) overtakable() (least float64) {
	if !q.shared {
		least, _ = q.latest()
		return least
	}
	for _, t := range q.came {
		if t.call == nil || t.call.passedAt != 0 {
			least = t.least
		}
	}
	return least
}

// give gives the call the next turn.
func (q *turnLog) give(c *call, now int64, low, high float64) {
	least, most := q.wait(now, low, high, c.prioritized)
	at := sinceStart(now)
	if c.prioritized {
		for _, w := range q.unknown {
			w.due = math.Inf(1)
		}
	}
	switch {
	case c.prioritized && len(q.waiting) > 0:
		q.overtake(at, high)
	case q.loose:
		q.tail = at + most
	}
	q.waiting = append(q.waiting, turn{c, at + least, at + most, low, high})
	q.parts = q.parts || !whole(low) || !whole(high)
	q.pass(now)
}

// overtake has those that wait be pushed back, by as much as it may be.
func (q *turnLog) overtake(at, high float64) {
	_, q.tail = q.last(at)
	q.loose = true
	latest, _ := q.latest()
	push := max(high, at-latest)
	q.tail += push
	for i := range q.waiting {
		if t := &q.waiting[i]; !t.call.prioritized {
			t.most += push
		}
	}
}

// pass lets turns come.
func (q *turnLog) pass(now int64) {
	at := sinceStart(now)
	if q.loose {
		q.passLoose(at)
		return
	}
	for len(q.waiting) > 0 && q.waiting[0].most <= at {
		t := q.waiting[0]
		t.call.due = max(t.call.due, t.most)
		if q.came = append(q.came, t); len(q.came) > 100 {
			q.came = slices.Delete(q.came, 0, 50)
		}
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
}

// passLoose is pass where the order isn't known: a call that runs has had its turn.
func (q *turnLog) passLoose(at float64) {
	var still []turn
	for _, t := range q.waiting {
		if t.call.passedAt != 0 {
			t.most = min(t.most, sinceStart(t.call.passedAt))
		} else if t.most > at {
			still = append(still, t)
			continue
		}
		t.call.due = max(t.call.due, t.most)
		least, most := q.latest()
		if t.most = max(t.most, most); !q.shared {
			t.least = max(t.least, least)
		}
		q.came = append(q.came, t)
	}
	if q.waiting = still; len(still) == 0 {
		q.loose = false
	}
}

// leave takes back the turn of a call that gave up. Those behind it move up.
func (q *turnLog) leave(c *call, now int64) {
	q.pass(now)
	i := slices.IndexFunc(q.waiting, func(t turn) bool { return t.call == c })
	if i < 0 {
		q.leaveLate(c)
		i = 0
	} else {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	at := sinceStart(now)
	least, most := q.latest()
	if q.loose {
		for j := range q.waiting {
			t := &q.waiting[j]
			t.least = min(t.least, least+t.low)
			t.call.movable = true
		}
		q.loose = len(q.waiting) > 0
		return
	}
	if i > 0 {
		least, most = q.waiting[i-1].least, q.waiting[i-1].most
	}
	for j := i; j < len(q.waiting); j++ {
		t := &q.waiting[j]
		t.least, t.most = min(t.least, max(at, least+t.low)), min(t.most, max(at, most+t.high))
		least, most = t.least, t.most
		t.call.movable = true
	}
}

// leaveLate is leave for a call whose turn has come: it waited for something else.
func (q *turnLog) leaveLate(c *call) {
	for i := 1; i < len(q.came); i++ {
		if q.came[i].call == c {
			q.came[i].least = q.came[i-1].least
		}
	}
}

// judge is what a throttle may say of a call that costs from low to high.
func (q *turnLog) judge(now int64, low, high float64, first bool, maxWait time.Duration) opinion {
	least, most := q.wait(now, low, high, first)
	off := 0.0
	if q.parts || !whole(low) || !whole(high) {
		off = hair
	}
	return opinion{passes: least <= float64(maxWait)+off, refuses: most > float64(maxWait)-off}
}
