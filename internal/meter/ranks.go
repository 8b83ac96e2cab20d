package meter

// ranks holds waiting calls in the order in which they are served: by arrival, except for
// prioritized ones. Each has links to its neighbors, so that leaving from the middle takes no
// search. The zero value is empty.
//
// # Who overtakes
//
// A prioritized waiter is placed behind the last prioritized one, and ahead of the others as long
// as they can pay for it. Each of the others pays with its own cost, once: an overtaking waiter
// takes its cost from the ones it finds there, in their order, and is placed ahead of the first
// one with something left, or with exactly nothing left just then. So in all, a waiter is overtaken
// by at most the cost of the ordinary waiters that it found, plus its own: those paid for
// everything that overtook it, and none of them has paid more than its cost. If all cost the same,
// at least every second one served is not prioritized, while any overtaken ordinary waiter waits;
// and a waiter waits at most twice its announced wait, plus one cost. A share of more than half
// would let waiters wait three times as long or more. A smaller one would make an overtaking waiter
// stay behind two or more.
//
// The bound is not the announced wait: under overload that is nearly the maximum, and no waiter
// could be overtaken. Nor does the grant of a turn choose between the two kinds: later arrivals
// would then push back waiters whose wait had been announced.
//
// An order once given stands: a prioritized waiter is never overtaken, and a later waiter,
// prioritized or not, changes no place ahead of the last prioritized one.
//
// # Bookkeeping
//
// The payments of a waiter are kept by the prioritized ones right before it: only the first one
// behind a prioritized one can have paid in part. They go with it when it leaves. If the last
// prioritized one leaves, the one before it is the last again, with the payments at its arrival; so
// a waiter that leaves might as well never have arrived. Those behind the one that left can be
// overtaken again, at most as many as it had passed on arrival: an arrival passes no more waiters
// than pay for it.
type ranks[W ranked[W]] struct {
	length     int
	head, tail W
	last       W // the last prioritized one, or nil

	cost  Moment // of all
	front Moment // of all up to and including last
	paid  Moment // by the first waiter, for those already served
	// overtook is the total cost of all overtaking waiters so far. It may wrap around.
	overtook Moment
}

// ranked is a pointer to a waiter: a call's place in the queue of a semaphore, or its turn.
type ranked[W any] interface {
	comparable
	rank() *place[W]
}

// place is the place of a waiter.
type place[W any] struct {
	before, after W
	cost          Moment
	first         bool // prioritized
	ahead         bool // is ahead of last, or is last: never overtaken
	// paid is the payment of the waiter behind: for this one, which is prioritized, and those
	// before it.
	paid Moment
	// since is the value of overtook when the waiter learned its place; if it is ahead, the cost of
	// all waiters that have overtaken it since then.
	since Moment
}

// spot is the place of a new prioritized waiter.
type spot[W any] struct {
	behind W      // nil if it is first
	ahead  Moment // cost of all before it
	paid   Moment // by the one behind it then
}

// first returns the next one, or nil.
func (r *ranks[W]) first() W { return r.head }

// spot returns the place of a prioritized waiter of that cost. If that is first, the others wait
// longer by now.
func (r *ranks[W]) spot(cost, now Moment) spot[W] {
	var none W
	s := spot[W]{behind: r.last, ahead: r.front}
	next, due := r.head, r.paid.plus(now)
	paid := r.paid
	if r.last != none {
		p := r.last.rank()
		next, paid = p.after, p.paid
		due = paid.plus(cost)
	}
	for next != none {
		p := next.rank()
		if due.Later(p.cost) == p.cost {
			s.paid = due
			return s
		}
		s.behind, s.ahead = next, s.ahead.plus(p.cost)
		due = paid.plus(cost).minus(p.cost)
		if due.ns < 0 {
			due = Moment{}
		}
		paid, cost = due, Moment{}
		next = p.after
	}
	return s
}

// add puts w behind all others.
func (r *ranks[W]) add(w W, cost Moment) {
	p := w.rank()
	p.cost, p.first, p.ahead, p.since = cost, false, false, r.overtook
	r.insert(w, r.tail)
}

// overtake puts w at its spot.
func (r *ranks[W]) overtake(w W, cost Moment, s spot[W]) {
	var none W
	p := w.rank()
	p.cost, p.first, p.ahead, p.since, p.paid = cost, true, true, Moment{}, s.paid
	next := r.head
	if r.last != none {
		next = r.last.rank().after
	}
	for s.behind != r.last && next != none { // they have been overtaken for the last time
		q := next.rank()
		r.turn(q, true)
		if next == s.behind {
			break
		}
		next = q.after
	}
	r.insert(w, s.behind)
	r.last, r.front = w, s.ahead.plus(cost)
	r.overtook = r.overtook.plus(cost)
}

// overtakeAtOnce accounts for a waiter served without a place: it would be first, and the others
// wait longer by now.
func (r *ranks[W]) overtakeAtOnce(now Moment) {
	r.paid = r.paid.plus(now)
	r.overtook = r.overtook.plus(now)
}

// undo takes back the last one served, of that cost.
func (r *ranks[W]) undo(cost Moment) {
	if r.paid = r.paid.minus(cost); r.paid.ns < 0 {
		r.paid = Moment{}
	}
}

// pushed returns the cost of the waiters that have overtaken w since it learned its place.
func (r *ranks[W]) pushed(w W) Moment {
	p := w.rank()
	if p.ahead {
		return p.since
	}
	return r.overtook.minus(p.since)
}

// announced records that w knows its place.
func (r *ranks[W]) announced(w W) {
	p := w.rank()
	if p.since = r.overtook; p.ahead {
		p.since = Moment{}
	}
}

// turn sets whether a waiter is ahead of the last prioritized one.
func (r *ranks[W]) turn(p *place[W], ahead bool) {
	p.ahead, p.since = ahead, r.overtook.minus(p.since)
}

// insert puts w behind another one, or first if that is nil.
func (r *ranks[W]) insert(w, behind W) {
	var none W
	p := w.rank()
	if r.head == none {
		r.paid = Moment{} // by one that has left
	}
	if p.before = behind; behind != none {
		q := behind.rank()
		p.after, q.after = q.after, w
	} else {
		p.after, r.head = r.head, w
	}
	if p.after != none {
		p.after.rank().before = w
	} else {
		r.tail = w
	}
	r.length++
	r.cost = r.cost.plus(p.cost)
}

// serve removes the first one.
func (r *ranks[W]) serve(w W) {
	p := w.rank()
	r.remove(w)
	if p.first {
		r.paid = p.paid
	}
}

// remove removes w, wherever it is.
func (r *ranks[W]) remove(w W) {
	var none W
	p := w.rank()
	before, after := p.before, p.after
	if before != none {
		before.rank().after = after
	} else {
		r.head = after
	}
	if after != none {
		after.rank().before = before
	} else {
		r.tail = before
	}
	p.before, p.after = none, none
	r.length--
	r.cost = r.cost.minus(p.cost)
	if p.ahead {
		r.front = r.front.minus(p.cost)
	}
	switch {
	case w == r.last:
		r.retreat(before)
	case !p.first:
		r.forgive(before)
	}
}

// forgive clears the payments of a leaving waiter: for w, which was before it, and for all
// prioritized ones from there on, up to the first in the queue and those already served. Each of
// them has paid for more than those before it: if there is nothing to clear, there is nothing
// further ahead.
func (r *ranks[W]) forgive(w W) {
	var none W
	for w != none {
		p := w.rank()
		if !p.first || p.paid == (Moment{}) {
			return
		}
		p.paid, w = Moment{}, p.before
	}
	r.paid = Moment{}
}

// retreat makes the last prioritized one up to w the last again: those behind it can be overtaken.
func (r *ranks[W]) retreat(w W) {
	var none W
	for w != none && !w.rank().first {
		p := w.rank()
		r.turn(p, false)
		r.front = r.front.minus(p.cost)
		w = p.before
	}
	r.last = w
}
