package sharing

// permitDemand decides how many permits a member asks the store for, when it gives some back, and which calls
// are refused without asking.
//
// Invariant: permits that no call has used since idleAt was set go back then. Until fullUntil a call that
// needs more than is free is refused, and doesn't ask.
//
// The semaphore's mutex guards it.
type permitDemand struct {
	short     int64 // permits that were missing since the last command
	idleAt    int64 // when permits that were not in use since it was set go back
	fullUntil int64 // the store had too few
}

func newPermitDemand() permitDemand { return permitDemand{idleAt: never} }

// permitPosition is the state that a permitDemand decides by.
type permitPosition struct {
	limit  int64 // of all members
	used   int64 // permits of calls
	good   int64 // permits that calls may have
	room   int64 // permits that no member has
	active int64 // members that hold any
}

// free returns the permits that no call of any member is known to have.
func (p permitPosition) free() int64 { return p.room + max(0, p.good-p.used) }

// ask returns the permits that the member needs, and those that it wants, in all. It keeps those that are
// used or good. If calls wait or some permits were missing, it asks for those as well, and for a quarter
// more, for the next calls, if the limit is two permits a member at least.
func (d *permitDemand) ask(calls waiting, p permitPosition) (need, want int64) {
	short := d.short
	d.short = 0
	need, want = p.used, max(p.used, p.good)
	if calls.first == nil && short == 0 {
		return need, want
	}
	need = p.used + 1 // of several calls, one may fit
	if calls.first != nil {
		need = p.used + calls.first.Units
	}
	more := p.used + short + calls.units
	if p.limit >= 2*p.active {
		more += (more + 3) / 4
	}
	return need, max(want, need, more)
}

// keep plans when permits go back, if some are spare.
func (d *permitDemand) keep(now int64, spare bool) {
	if d.idleAt == never && spare {
		d.idleAt = now + idlePermits
	}
}

// isFull reports whether calls that need more than is free are refused without asking.
func (d *permitDemand) isFull(now int64) bool { return now < d.fullUntil }

// full has calls that need more than is free refused for a while. Nobody knows when a permit comes free, and
// each call that asks costs a round trip.
func (d *permitDemand) full(now int64, rand random) {
	d.fullUntil = now + fullFor/2 + rand(fullFor)
}
