package sharing

// leases are the units that a member may spend: the lease of the current bucket, and the next one,
// which waits for its bucket to begin.
//
// Invariant: each granted unit is in one place. Units of lot cur are in lease until the lot ends,
// units of lot next are in nextLeft, and a call owns the units it took until it gives them back.
// The unspent units of a lot are a result, once, of the method that ends it or finds that it has
// ended; the caller hands them back.
//
// The window's mutex guards all fields but lease, from which calls take without it.
type leases struct {
	lease    lease
	lots     lots
	cur      uint32 // the lot in lease, 0 if none
	next     uint32 // the lot of a coming bucket, 0 if none
	nextLeft int64  // units of next
}

func newLeases(buckets int) leases { return leases{lots: newLots(buckets)} }

// leftover is an ended lot, nil if there is none, and the number of its unspent units.
type leftover struct {
	lot     *lot
	unspent int64
}

func (o leftover) spent() int64 { return o.lot.granted - o.unspent }

// roll ends the leases that are over at now, and begins the next one if its time has come. At most
// one lot begins; at most one current and one next lot end.
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

// closeNext ends the next lease before it begins.
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

// grant adds l, granted at now, to the lease of its bucket, or makes it that lease; the one it
// replaces is over. An owned lot is in no lease: a call owns its units.
func (s *leases) grant(l lot, now int64) (in *lot, over leftover) {
	n := l.granted
	in = s.lots.like(l, now)
	if in != nil && (l.owned || in.number == s.cur || in.number == s.next) {
		in.starts, in.ends = max(in.starts, l.starts), max(in.ends, l.ends)
	} else {
		switch {
		case l.owned:
		case l.starts > now:
			over = s.closeNext()
		default:
			over = s.closeCurrent(now)
		}
		if over.lot != nil { // add may use its place
			ended := *over.lot
			over.lot = &ended
		}
		l.granted = 0
		in = s.lots.add(l, s.cur, s.next)
	}
	in.granted += n
	switch {
	case in.owned:
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

// giveBack returns n units to the lot that they were taken from, if that is in a lease. If it is
// not, giveBack returns the bucket that the units go back to; over is false if they no longer count
// there, or if the lot is of another epoch, whose units the store has forgotten.
func (s *leases) giveBack(number uint32, n, epoch int64) (bucket int64, over bool) {
	o, ok := s.lots.origin(number)
	switch {
	case !ok || o.epoch != epoch:
		return 0, false
	case number == s.cur && s.lease.giveBack(number, n):
		return 0, false
	case number == s.next:
		s.nextLeft += n
		return 0, false
	}
	return o.bucket, true
}

// holds reports whether units of a lot may be spent at now.
func (s *leases) holds(number uint32, epoch, now int64) bool {
	l := s.lots.find(number)
	return l != nil && l.epoch == epoch && now >= l.starts && now < l.ends
}

// newlySpent returns the units of the current lot spent since the previous call.
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

// curAndNext returns the lots of both leases; each may be nil.
func (s *leases) curAndNext() [2]*lot { return [2]*lot{s.lots.find(s.cur), s.lots.find(s.next)} }

// changesAt returns the next time at which a lease begins or ends.
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
