package sharing

// leases are the units that a member may spend: the lease of the current bucket, and the next one, which
// waits until its bucket begins.
//
// Invariant: each granted unit is in one place. Units of lot cur are in lease until the lot ends, units of
// lot next are in nextLeft, and what a call took is the call's until it gives it back. What is left of a lot
// that ends, or comes back to it later, is returned by the method that finds out, once, and is then the
// caller's to hand back.
//
// The window's mutex guards all of it but lease, which calls take from without.
type leases struct {
	lease    lease
	lots     lots
	cur      uint32 // the lot in lease, 0 if none
	next     uint32 // the lot of a coming bucket, 0 if none
	nextLeft int64  // units of next
}

func newLeases(buckets int) leases { return leases{lots: newLots(buckets)} }

// leftover is a lot that is over, nil if none is, and how many of its units were not spent.
type leftover struct {
	lot     *lot
	unspent int64
}

func (o leftover) spent() int64 { return o.lot.granted - o.unspent }

// roll ends the leases that are over at now, and begins the next one if it is time. At most one lot begins;
// at most one that was current and one that was next are over.
func (s *leases) roll(now int64) (over [2]leftover, begun *lot) {
	if s.cur != 0 && now >= s.lease.end.Load() {
		over[0] = s.closeCurrent(now)
	}
	switch l := s.lots.find(s.next); {
	case l == nil || now < l.starts:
	case now >= l.ends:
		over[1] = s.closeNext()
	default:
		if s.cur != 0 { // it ends as the next one begins
			over[0] = s.closeCurrent(now)
		}
		s.cur, s.next = s.next, 0
		s.lease.open(s.cur, s.nextLeft, l.ends)
		s.nextLeft = 0
		begun = l
	}
	return over, begun
}

// closeCurrent ends the current lease.
func (s *leases) closeCurrent(now int64) leftover {
	over := leftover{s.lots.find(s.cur), s.lease.close(now)}
	s.cur = 0
	return over.close()
}

// closeNext ends the next lease, which hasn't begun.
func (s *leases) closeNext() leftover {
	over := leftover{s.lots.find(s.next), s.nextLeft}
	s.next, s.nextLeft = 0, 0
	return over.close()
}

func (o leftover) close() leftover {
	if o.lot != nil {
		o.lot.closed = true
	}
	return o
}

// grant adds a lot as it was granted at now to the lease of its bucket, or makes it that lease, in place of
// one that is over then. A borrowed lot is in no lease: its units are those of the call that borrows.
func (s *leases) grant(l lot, now int64) (in *lot, over leftover) {
	n := l.granted
	in = s.lots.like(l, now)
	if in != nil && (l.borrowed || in.number == s.cur || in.number == s.next) {
		in.starts, in.ends = max(in.starts, l.starts), max(in.ends, l.ends)
	} else {
		switch {
		case l.borrowed:
		case l.starts > now:
			over = s.closeNext()
		default:
			over = s.closeCurrent(now)
		}
		l.granted = 0
		in = s.lots.add(l, s.cur, s.next)
	}
	in.granted += n
	switch {
	case in.borrowed:
	case in.starts > now:
		s.next = in.number
		s.nextLeft += n
	case in.number == s.cur:
		s.lease.add(n, in.ends)
	default:
		s.cur = in.number
		s.lease.open(s.cur, n, in.ends)
	}
	return in, over
}

// giveBack gives n units back to the lot that they were taken from. It returns the lot if that is in no
// lease, nil if they are in one, or if the lot is forgotten or of another epoch, as the store then counts
// them no longer.
func (s *leases) giveBack(number uint32, n, epoch int64) (over *lot) {
	l := s.lots.find(number)
	switch {
	case l == nil || l.epoch != epoch:
		return nil
	case number == s.cur && s.lease.giveBack(number, n):
		return nil
	case number == s.next:
		s.nextLeft += n
		return nil
	}
	return l
}

// holds reports whether units of a lot may be spent at now.
func (s *leases) holds(number uint32, epoch, now int64) bool {
	l := s.lots.find(number)
	return l != nil && l.epoch == epoch && now >= l.starts && now < l.ends
}

// newlySpent returns how many units of the current lot were spent since the last time.
func (s *leases) newlySpent() int64 {
	l := s.lots.find(s.cur)
	if l == nil {
		return 0
	}
	before := l.measured
	l.measured = l.granted - s.lease.units()
	return l.measured - before
}

// units returns the units of both leases.
func (s *leases) units() int64 { return s.lease.units() + s.nextLeft }

// open returns the lots of both leases, each nil if there is none.
func (s *leases) open() [2]*lot { return [2]*lot{s.lots.find(s.cur), s.lots.find(s.next)} }

// changesAt returns when a lease ends or begins next.
func (s *leases) changesAt() int64 {
	at := never
	if s.cur != 0 {
		at = s.lease.end.Load()
	}
	if l := s.lots.find(s.next); l != nil {
		at = min(at, l.starts)
	}
	return at
}
