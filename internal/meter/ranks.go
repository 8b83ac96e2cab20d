package meter

// ranks holds waiting calls in the order in which they are served: by arrival, except that
// prioritized calls jump ahead. Each has links to its neighbors, so that removing one from the
// middle takes no search. The zero value is empty.
// # Which waiters jump ahead
//
// A prioritized waiter is placed behind the last prioritized one, and ahead of the ordinary waiters
// that can pay for it. Each ordinary waiter can pay its own cost, once: a prioritized waiter takes
// its cost from the ordinary waiters that it finds, in their order, and is placed ahead of the
// first that still has something left, or that pays exactly its remainder. So the waiters that jump
// ahead of an ordinary waiter cost at most as much as the ordinary waiters that it found on
// arrival, plus its own cost: those waiters paid for everything that jumped ahead of it, and none
// of them has paid more than its cost. If all cost the same, at least every second waiter served is
// ordinary while any ordinary waiter that was passed still waits; and a waiter waits at most twice
// its announced wait, plus one cost. With a prioritized share above one half, waiters could wait
// three times as long or more. With a smaller one, a prioritized waiter would stay behind two or
// more ordinary ones.
//
// The announced wait can't serve as the bound: under overload it is nearly the maximum, and no
// waiter could be passed. Nor can the choice between the two kinds be made when a turn is granted:
// later arrivals would then push back waiters whose wait had been announced.
//
// The order of placed waiters is final: nothing jumps ahead of a prioritized waiter, and a later
// waiter, prioritized or not, changes nothing ahead of the last prioritized one.
//
// # Bookkeeping
//
// The payments of a waiter are recorded in the prioritized waiters right before it: only the first
// waiter behind a prioritized one can have paid in part. When the paying waiter leaves, its
// payments are cleared. If the last prioritized waiter leaves, the one before it is the last again,
// with the payments at its arrival; so the queue is as if the waiter had never arrived. The waiters
// behind it can be passed again, at most as many as it had passed on arrival: an arrival passes no
// more waiters than pay for it.
type ranks[W ranked[W]] struct {
	length     int
	head, tail W
	last       W // the last prioritized one, or nil

	cost  Moment // of all waiters
	front Moment // of all waiters up to and including last
	paid  Moment // by the first waiter, for waiters already served
	// overtook is the total cost of all waiters that have jumped ahead so far. It may wrap around.
	overtook Moment
}

// ranked is a pointer to a waiter: a call's place in a semaphore's queue, or its turn.
type ranked[W any] interface {
	comparable
	rank() *place[W]
}

// place is the place of a waiter.
type place[W any] struct {
	before, after W
	cost          Moment
	first         bool // prioritized
	ahead         bool // is ahead of last, or is last: nothing jumps ahead of it
	// paid is the payment of the waiter behind this prioritized one, for this one and the waiters
	// before it.
	paid Moment
	// since is the value of overtook when the waiter learned its place. If it is ahead, since is
	// the cost of all waiters that have jumped ahead of it since then.
	since Moment
}

// spot is the place of a new prioritized waiter.
type spot[W any] struct {
	behind W      // nil if it is first
	ahead  Moment // cost of all waiters before it
	paid   Moment // by the waiter that will be behind it
}

// first returns the first waiter, or nil.
func (r *ranks[W]) first() W { return r.head }

// spot returns the spot for a prioritized waiter of that cost. If it would be first, the others
// then wait longer by the duration now.
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

// overtake inserts w at its spot.
func (r *ranks[W]) overtake(w W, cost Moment, s spot[W]) {
	var none W
	p := w.rank()
	p.cost, p.first, p.ahead, p.since, p.paid = cost, true, true, Moment{}, s.paid
	next := r.head
	if r.last != none {
		next = r.last.rank().after
	}
	for s.behind != r.last && next != none { // nothing will jump ahead of them again
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
// wait longer by the duration now.
func (r *ranks[W]) overtakeAtOnce(now Moment) {
	r.paid = r.paid.plus(now)
	r.overtook = r.overtook.plus(now)
}

// undo takes back the last waiter served, of that cost.
func (r *ranks[W]) undo(cost Moment) {
	if r.paid = r.paid.minus(cost); r.paid.ns < 0 {
		r.paid = Moment{}
	}
}

// pushed returns the cost of the waiters that have jumped ahead of w since it learned its place.
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

// insert puts w behind another waiter, or first if behind is nil.
func (r *ranks[W]) insert(w, behind W) {
	var none W
	p := w.rank()
	if r.head == none {
		r.paid = Moment{} // by a waiter that has left
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

// serve removes the first waiter.
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

// forgive clears the payments recorded for a leaving waiter. It starts at w, which was before it, and
// moves over prioritized waiters toward the head of the queue; then it clears the payments for
// waiters already served. The recorded payments only grow towards the leaving waiter: if there is
// nothing to clear at one waiter, there is nothing further ahead.
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

// retreat moves last and front back to the last prioritized waiter at or before w, so that waiters
// behind it can be passed again.
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
