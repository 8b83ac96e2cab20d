package stat

// ranks are calls that wait, in the order in which they are served: those that come first,
// and then the others, each in the order in which they came. Everybody knows their
// neighbors, so that leaving from the middle takes no search. The zero value is empty. Who
// waits in two of them has a place in each.
type ranks[W ranked[W]] struct {
	length       int
	heads, tails [2]W
}

// ranked is a pointer to what waits: a call's place in the queue of a semaphore, or its turn.
type ranked[W any] interface {
	comparable
	rank() *place[W]
}

// place is where somebody stands.
type place[W any] struct {
	before, after W
	second        bool // behind those that come first
}

func (p *place[W]) index() int {
	if p.second {
		return 1
	}
	return 0
}

// first is the next one, or nil.
func (r *ranks[W]) first() W {
	var none W
	if r.heads[0] != none {
		return r.heads[0]
	}
	return r.heads[1]
}

// ahead reports whether anybody is before one who would come now.
func (r *ranks[W]) ahead(second bool) bool {
	var none W
	return r.heads[0] != none || second && r.heads[1] != none
}

// add puts w behind all others of its kind.
func (r *ranks[W]) add(w W, second bool) {
	var none W
	p := w.rank()
	p.second = second
	i := p.index()
	if p.before = r.tails[i]; p.before != none {
		p.before.rank().after = w
	} else {
		r.heads[i] = w
	}
	r.tails[i] = w
	r.length++
}

// remove takes w out, wherever it stands.
func (r *ranks[W]) remove(w W) {
	var none W
	p := w.rank()
	i := p.index()
	if p.before != none {
		p.before.rank().after = p.after
	} else {
		r.heads[i] = p.after
	}
	if p.after != none {
		p.after.rank().before = p.before
	} else {
		r.tails[i] = p.before
	}
	p.before, p.after = none, none
	r.length--
}
