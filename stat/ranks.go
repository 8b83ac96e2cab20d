package stat

// ranks are calls that wait, in the order in which they are served: as they came, but for
// those that are prioritized. Everybody knows their neighbors, so that leaving from the
// middle takes no search. The zero value is empty.
//
// # Who overtakes
//
// One that is prioritized stands behind the last one that is, and before the others as far
// as they can pay for it. Each of the others pays with its own cost, once: whoever overtakes
// takes its cost from those that it finds there, in their order, and stands before the first
// one that is left with something, or with nothing just then. So in all, one that waits is
// overtaken by at most what those cost that it found, prioritized ones aside, and it itself:
// whoever overtook it was paid by them, none of which has paid more than its cost. Where all
// cost the same, every second one at least that is served is not prioritized, as long as any
// such waits that is overtaken; and a waiter that was told a wait waits for twice as long at
// most, and one cost. More than half would let waiters wait for three times as long or more. Less
// would make a waiter that overtakes stay behind two or more.
//
// An order that was given stands: one that is prioritized is overtaken by nobody, and a waiter
// that comes later, prioritized or not, changes no place before that of the last one that is.
//
// # What is kept of it
//
// The payments of a waiter are kept by the waiter right before it: only the first one behind a
// prioritized one can have paid in part. If the last prioritized one leaves, the one before it
// is the last again, with what was paid when it came; so one that leaves is as good as never
// having come. Those that were behind the one that left can be overtaken again, at most as
// many as it had passed over when it came: an arrival passes no more waiters than pay for it.
type ranks[W ranked[W]] struct {
	length     int
	head, tail W
	last       W // the last of those that are prioritized, or nil

	cost  Moment // of all
	front Moment // of all up to last, with it
	paid  Moment // by the first, to those that were served
	// overtook is the cost of all together that ever overtook. It may wrap around.
	overtook Moment
}

// ranked is a pointer to a waiter: a call's place in the queue of a semaphore, or its turn.
type ranked[W any] interface {
	comparable
	rank() *place[W]
}

// place is where somebody stands.
type place[W any] struct {
	before, after W
	cost          Moment
	first         bool // prioritized
	ahead         bool // stands before last, or is it: nobody overtakes it
	// paid is the payment of the waiter behind: for this one, which is prioritized, and those
	// before it.
	paid Moment
	// since is overtook when it was told its place; of one that stands ahead, the cost of
	// all that have overtaken it since then.
	since Moment
}

// spot is where one that is prioritized comes to stand.
type spot[W any] struct {
	behind W      // nil if it is first
	ahead  Moment // the cost of all before it
	paid   Moment // by the one behind it then
}

// first is the next one, or nil.
func (r *ranks[W]) first() W { return r.head }

// spot is where one of that cost stands if it is prioritized. Where it is first, the others
// wait for longer by now.
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

// overtakeAtOnce is for one that is served without a place: it would be first, and the
// others wait for longer by now.
func (r *ranks[W]) overtakeAtOnce(now Moment) {
	r.paid = r.paid.plus(now)
	r.overtook = r.overtook.plus(now)
}

// undo says that the one that was served last was not, and cost that.
func (r *ranks[W]) undo(cost Moment) {
	if r.paid = r.paid.minus(cost); r.paid.ns < 0 {
		r.paid = Moment{}
	}
}

// pushed is the cost of all that have overtaken w since it was told its place.
func (r *ranks[W]) pushed(w W) Moment {
	p := w.rank()
	if p.ahead {
		return p.since
	}
	return r.overtook.minus(p.since)
}

// told notes that w knows its place.
func (r *ranks[W]) told(w W) {
	p := w.rank()
	if p.since = r.overtook; p.ahead {
		p.since = Moment{}
	}
}

// turn says whether one stands ahead of the last that is prioritized.
func (r *ranks[W]) turn(p *place[W], ahead bool) {
	p.ahead, p.since = ahead, r.overtook.minus(p.since)
}

// insert puts w behind another one, or first if that is nil.
func (r *ranks[W]) insert(w, behind W) {
	var none W
	p := w.rank()
	if r.head == none {
		r.paid = Moment{} // by one that isn't there any more
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

// serve takes out the first.
func (r *ranks[W]) serve(w W) {
	p := w.rank()
	r.remove(w)
	if p.first {
		r.paid = p.paid
	}
}

// remove takes w out, wherever it stands.
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
	case p.first:
	case before != none: // its payments go with it
		before.rank().paid = Moment{}
	default:
		r.paid = Moment{}
	}
}

// retreat makes the last prioritized one up to w the last again: those behind it can be
// overtaken.
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
